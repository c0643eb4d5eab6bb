"""Turns that began in the same state, compared with each other (GiGPO, arXiv 2505.10978).

The return of turn t of an episode of T turns with reward R is G_t = γ^(T-1-t) · R. All turns of the
group that began in one state s form a group of their own:

    A_t = A + ω · (G_t - mean over s) / (deviation over s + 1e-6)

with A the episode's advantage. A state that was met once says nothing: 0. The deviation is left out
with `baseline: mean`. States are those of the world, by its recorded changes, and cost no rollout.

Example: two episodes leave the start world at once, to worlds x and y, and succeed and fail from
there. γ = 1: their first turns share the start and get ±0.707; their second turns share nothing, 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from muarl.credit.scored import PerTurn, Scored
from muarl.credit.states import states_before_turns
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode
from muarl.spec.credit import GigpoCredit


def gigpo(group: Scored, spec: GigpoCredit) -> PerTurn:
    """Advantages of turns; see the module."""
    met: defaultdict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for number, episode in enumerate(group.episodes):
        for turn, anchor in enumerate(_anchors(episode, spec)):
            met[anchor].append((number, turn))
    credit = [[0.0] * len(episode.turns) for episode in group.episodes]
    for places in met.values():
        returns = [
            group.rewards[number] * spec.discount ** (len(credit[number]) - 1 - turn)
            for number, turn in places
        ]
        values = group_advantages(returns, baseline=spec.baseline)
        for (number, turn), value in zip(places, values, strict=True):
            credit[number][turn] = value or 0.0
    return group.added(credit, spec.weight)


def _anchors(episode: Episode, spec: GigpoCredit) -> list[Hashable]:
    """What each turn is found by."""
    states = states_before_turns(episode)
    if spec.anchor == "world":
        return list(states)
    answers: list[Hashable] = [episode.opening.text]
    for turn in episode.turns[:-1]:
        results = tuple((r.name, r.is_error, r.content) for r in turn.results)
        answers.append((results, None if turn.reply is None else turn.reply.text))
    return list(zip(states, answers, strict=True))
