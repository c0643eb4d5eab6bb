"""Items done, each when it first holds (CM2, arXiv 2602.12268).

An item k of weight w_k is looked at before the first turn and after every one. It is earned by the turn
t at which it first holds while all items it comes after were earned, at t or before; what holds before
the first turn nobody earned. A turn's points are r_t = Σ w_k over the items it earns; an item counts
once.

    units    each turn, each exchange (all turns between two messages of the user), or each episode
    A_t = A + λ · z(points of t's unit)         z over all units of the group

"Sparse in assignment, dense in criteria": with `exchange` there are as many numbers as the user spoke,
however many items there are. A user's replies belong to the turn that they answer.

Example: two exchanges, the second of which gets the only item done: z = (-0.707, 0.707).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from muarl.credit.scored import PerTurn, Scored, exchanges
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode
from muarl.spec.credit import ChecklistCredit, ChecklistItem

_HOLDS = 1 - 1e-9
"""A score of 1, to rounding."""


def checklist(group: Scored, spec: ChecklistCredit) -> PerTurn:
    """Advantages of turns; see the module. Episodes that were not measured keep theirs."""
    units = [
        (number, turns, math.fsum(points[turn] or 0.0 for turn in turns))
        for number, episode in enumerate(group.episodes)
        if (points := group.measured.get(episode.key)) is not None
        for turns in _units(episode, spec)
    ]
    values = group_advantages([points for _, _, points in units], baseline="std")
    credit = [[0.0] * len(episode.turns) for episode in group.episodes]
    for (number, turns, _), value in zip(units, values, strict=True):
        for turn in turns:
            credit[number][turn] = value or 0.0
    return group.added(credit, spec.weight)


def _units(episode: Episode, spec: ChecklistCredit) -> Sequence[range]:
    match spec.level:
        case "turn":
            return [range(turn, turn + 1) for turn in range(len(episode.turns))]
        case "exchange":
            return exchanges(episode)
        case "episode":
            return [range(len(episode.turns))]


class Tally:
    """Goes through a dialogue once, and finds which turn earned what.

        one item of weight 1, scores 0, 0, 1 before the first turn and after each   ->   [0, 1]

    Attributes:
        points: What each turn earned.
    """

    def __init__(self, items: Sequence[ChecklistItem], num_turns: int) -> None:
        self.points = [0.0] * num_turns
        self._items = items
        self._done: set[str] = set()
        self._moment = 0

    def due(self) -> list[ChecklistItem]:
        """What is not done yet."""
        return [item for item in self._items if item.id not in self._done]

    def take(self, scores: Mapping[str, float | None]) -> None:
        """What holds of `due` before the first turn, then after each; None does not apply."""
        for item in self.due():
            score = scores[item.id]
            if score is None or score < _HOLDS or not self._done.issuperset(item.after):
                continue
            self._done.add(item.id)
            if self._moment:
                self.points[self._moment - 1] += item.weight
        self._moment += 1
