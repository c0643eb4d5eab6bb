"""What a figure is: one number about a user, with its meaning and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from muarl.measure.view import UserTurn, View

Items = Callable[[Sequence[View]], Iterable[Any]]
"""What the dialogues on one task add to a figure."""

Better = Literal["lower", "higher", "compare"]
"""Which way is better; `compare`: only beside people, or beside another user."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure.

    Attributes:
        name: In tables and in JSON.
        number: Which of the 31 metrics it belongs to.
        says: What it is, so that it could be computed by hand.
        source: The publication it is from, or "muarl".
        unit: Of its value.
        better: Which way.
        items: What the dialogues on one task add.
        statistic: From the items of all tasks to the value; None: their mean.
        turn: Whether a turn of the user's counts, for figures that are shares of her turns: a judge
            can then be held against it.
    """

    name: str
    number: int
    says: str
    source: str
    unit: str
    better: Better
    items: Items
    statistic: Callable[[Sequence[Any]], float | None] | None = None
    turn: Callable[[UserTurn], bool] | None = None

    def value(self, items: Sequence[Any]) -> float | None:
        """From the items of all tasks; None where there are none."""
        if not items:
            return None
        return fmean(items) if self.statistic is None else self.statistic(items)


def each(observe: Callable[[View], Iterable[Any]]) -> Items:
    """What each dialogue adds by itself."""
    return lambda views: [item for view in views for item in observe(view)]


def turns(holds: Callable[[UserTurn], bool], *, opening: bool = True) -> Items:
    """One 0 or 1 for each turn of the user's that says something."""
    return each(
        lambda view: [
            float(holds(turn)) for turn in view.user if turn.words and (opening or turn.heard)
        ]
    )
