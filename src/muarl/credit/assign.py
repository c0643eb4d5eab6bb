"""From a group of episodes and the run's choice to a number for each turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from muarl.credit.checklist import checklist
from muarl.credit.discounted import discounted
from muarl.credit.gigpo import gigpo
from muarl.credit.influence import influence
from muarl.credit.information import information
from muarl.credit.reaction import reaction
from muarl.credit.scored import Measured, PerTurn, Scored
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode
from muarl.seeds import generator
from muarl.spec.grpo import GrpoSpec

_METHODS: dict[str, Callable[[Scored, Any], PerTurn]] = {
    "discounted": discounted,
    "gigpo": gigpo,
    "information": information,
    "reaction": reaction,
    "influence": influence,
    "checklist": checklist,
}


class Credited(NamedTuple):
    """What an episode earned, and each of its turns.

    Attributes:
        outcome: The episode's advantage over its siblings, as plain GRPO has it.
        turns: Advantage of each turn.
    """

    outcome: float
    turns: list[float]


def turn_advantages(
    episodes: Sequence[Episode],
    rewards: Sequence[float | None],
    spec: GrpoSpec,
    *,
    measured: Measured | None = None,
) -> list[Credited | None]:
    """Measure episodes by their group, and share that out among their turns.

    With weight 0, whatever the method, each turn has its episode's advantage, exactly.

    Args:
        episodes: Of one task.
        rewards: What each earned, shaped; None for a fault.
        spec: Baseline, method, and whether its credits are shuffled.
        measured: Of the episodes' turns, for `information` and `checklist`.

    Returns:
        One entry for each episode; None for a fault (law L2).
    """
    outcome = group_advantages(rewards, baseline=spec.baseline)
    kept = [
        (episode, reward, advantage)
        for episode, reward, advantage in zip(episodes, rewards, outcome, strict=True)
        if reward is not None and advantage is not None
    ]
    group = Scored(
        [episode for episode, _, _ in kept],
        [reward for _, reward, _ in kept],
        [advantage for _, _, advantage in kept],
        spec.baseline,
        measured or {},
    )
    method = _METHODS.get(spec.credit.name)
    if method is None or spec.credit.weight == 0:
        turns = [
            [advantage] * len(e.turns)
            for e, advantage in zip(group.episodes, group.advantages, strict=True)
        ]
    else:
        turns = method(group, getattr(spec.credit, spec.credit.name))
    if spec.shuffled_credit:
        turns = [_shuffled(row, e) for row, e in zip(turns, group.episodes, strict=True)]
    found = iter(zip(group.advantages, turns, strict=True))
    return [None if value is None else Credited(*next(found)) for value in outcome]


def _shuffled(turns: Sequence[float], episode: Episode) -> list[float]:
    """The same numbers, on other turns: what a method gains beyond this, it gains by the turn.

    Drawn anew for each episode, by its key (law L5).
    """
    rng = generator("shuffled credit", episode.key.run_seed, str(episode.key))
    return rng.sample(turns, len(turns))
