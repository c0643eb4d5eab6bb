"""Discounted reward-to-go and equalised turns (UserRL, arXiv 2509.19736, its section on shaping).

The reward of an episode of T turns falls to its last turn. Seen from turn t it is γ^(T-1-t) of it.

    score    sum    R            to_go   γ^(T-1) · R          what the group's baseline is taken of
    turns    equal  1            to_go   γ^(T-1-t)            shares, scaled to a mean of 1 over tokens

    A_t = Â(score) · share_t

Example: γ = 0.5, R = 1, two turns of equal length. Score to_go: 0.5. Turns to_go: shares 1/2 and 1,
scaled 2/3 and 4/3; they sum to 2, as without them.

With a weight below 1, score and shares lie that far between those of plain GRPO and these. The
released code gives no advantage at all to an episode whose reward is 0 where turns are `to_go`; here
it has the shares that every smaller reward has.
"""

from __future__ import annotations

from muarl.credit.scored import PerTurn, Scored, lengths, with_mean_one
from muarl.kernel.advantage import group_advantages
from muarl.spec.credit import DiscountedCredit


def discounted(group: Scored, spec: DiscountedCredit) -> PerTurn:
    """Advantages of turns; see the module."""
    advantages = list(group.advantages)
    if spec.score == "to_go":
        scores = [
            (1 - spec.weight) * reward + spec.weight * spec.discount ** (len(e.turns) - 1) * reward
            for e, reward in zip(group.episodes, group.rewards, strict=True)
        ]
        advantages = [a or 0.0 for a in group_advantages(scores, baseline=group.baseline)]
    found: PerTurn = []
    for episode, advantage in zip(group.episodes, advantages, strict=True):
        last = len(episode.turns) - 1
        shares = [
            spec.discount ** (last - turn) if spec.turns == "to_go" else 1.0
            for turn in range(last + 1)
        ]
        scaled = with_mean_one(shares, lengths(episode))
        found.append([advantage * (1 + spec.weight * (share - 1)) for share in scaled])
    return found
