"""The scored episodes of one task, and what every method does with their turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muarl.record import Episode, EpisodeKey
from muarl.spec.grpo import Baseline

Measured = Mapping[EpisodeKey, Sequence[float | None]]
"""What was measured of each turn of an episode; None where it could not be."""

PerTurn = list[list[float]]
"""A number for each turn of each episode."""


class Scored(NamedTuple):
    """The episodes of a group that were scored; faults are gone already (law L2).

    Attributes:
        episodes: Of one task.
        rewards: What each earned, shaped.
        advantages: Of each over its siblings.
        baseline: That they were measured by.
        measured: Of their turns, where the method needs more than the record.
    """

    episodes: Sequence[Episode]
    rewards: Sequence[float]
    advantages: Sequence[float]
    baseline: Baseline
    measured: Measured

    def added(self, credit: PerTurn, weight: float) -> PerTurn:
        """A credit laid over the episodes' advantages: A + weight · credit of the turn."""
        return [
            [advantage + weight * value for value in row]
            for advantage, row in zip(self.advantages, credit, strict=True)
        ]


def lengths(episode: Episode) -> list[int]:
    """Sampled tokens of each turn."""
    return [turn.end - turn.start for turn in episode.turns]


def with_mean_one(shares: Sequence[float], tokens: Sequence[int]) -> list[float]:
    """Shares of turns, scaled so that their mean over the episode's tokens is 1.

    Multiplied by them, an episode's advantage keeps its sum over tokens: what one turn gains others
    lose.

        shares [1, 3], tokens [2, 2]  ->  [0.5, 1.5]

    Shares that sum to nothing say nothing, and become 1 each.
    """
    total = math.fsum(share * count for share, count in zip(shares, tokens, strict=True))
    if total <= 0 or not math.isfinite(total):
        return [1.0] * len(shares)
    scale = sum(tokens) / total
    return [share * scale for share in shares]


def exchanges(episode: Episode) -> list[range]:
    """An episode's turns, cut after each that the user answered.

    call, call, say -> reply, say -> reply, call   ->  [0, 3), [3, 4), [4, 5)
    """
    found: list[range] = []
    begin = 0
    for position, turn in enumerate(episode.turns):
        if turn.reply is not None:
            found.append(range(begin, position + 1))
            begin = position + 1
    if begin < len(episode.turns):
        found.append(range(begin, len(episode.turns)))
    return found
