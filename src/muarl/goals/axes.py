"""Axes along which tasks differ, and quotas on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

AXES = ("wishes", "writes", "finds", "turns", "refusals")
"""What a task is measured by.

`wishes`: things that the user asks for. `writes`: gold calls that change something, whoever makes them.
`finds`: facts that the agent must find with tools, for nobody tells them. `turns`: the fewest messages
of the user's in which it can be done: one for each wish, each fact that some persona tells only when asked,
each yes to a write of the agent's and each deed of her own; and a goodbye. `refusals`: wishes that the
rules forbid.
"""

Axes = dict[str, int]
"""Axis to a task's value on it."""


def histogram(tasks: Iterable[Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Axis to its values and how many tasks have each, in order."""
    counts: dict[str, Counter[int]] = {axis: Counter() for axis in AXES}
    for axes in tasks:
        for axis, value in axes.items():
            counts[axis][value] += 1
    return {axis: dict(sorted(counter.items())) for axis, counter in counts.items()}


class Quotas:
    """How many tasks may still have a value on an axis.

    A share of `count` is rounded up, and where several axes are balanced a fiftieth is added: were quotas
    exact, the last tasks would have to fit all that is left at once.

    Args:
        balance: Axis to the shares of its values.
        count: Tasks in all.
    """

    def __init__(self, balance: Mapping[str, Mapping[int, float]], count: int) -> None:
        self._spare = math.ceil(count / 50)
        self._left = {
            axis: {value: math.ceil(share * count) for value, share in shares.items() if share}
            for axis, shares in balance.items()
        }
        if len(balance) > 1:
            self.loosen()

    def loosen(self) -> None:
        """Let each value have a fiftieth of all tasks more."""
        for left in self._left.values():
            for value in left:
                left[value] += self._spare

    def full(self, axes: Mapping[str, int]) -> str:
        """The first axis on which a task has a value that enough have; "" if it is welcome."""
        for axis, left in self._left.items():
            if left.get(axes[axis], 0) <= 0:
                return axis
        return ""

    def passed(self, axes: Mapping[str, int]) -> str:
        """The first axis on which there is room for no value that an unfinished task may come to, or "".

        Further wishes only add to a task, but for its turns: fewer personas can play it, and what only
        one of them waits to be asked for need not be.
        """
        for axis, left in self._left.items():
            if axis != "turns" and not any(
                room > 0 for value, room in left.items() if value >= axes[axis]
            ):
                return axis
        return ""

    def take(self, axes: Mapping[str, int]) -> None:
        """A task with these values was made."""
        for axis, left in self._left.items():
            left[axes[axis]] -= 1
