"""Intervals of what is no mean: entropies, quantiles, variance components."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muarl.evaluate.statistics import LEVEL, Interval

METHOD = "bootstrap by task"


def bootstrap(
    statistic: Callable[[Sequence[Any]], float | None],
    items_by_task: Mapping[str, Sequence[Any]],
    *,
    seed: int,
    resamples: int,
    level: float = LEVEL,
) -> Interval:
    """A statistic of all items, with a percentile interval that draws whole tasks.

    As `muarl.evaluate.statistics.bootstrap_mean`, whose sources it rests on. Draws of which the statistic
    says nothing are left out; if more than half are, there is no interval, and one task has none.
    """
    tasks = [items for items in items_by_task.values() if items]
    every = [item for items in tasks for item in items]
    value = statistic(every) if every else None
    if value is None or len(tasks) == 1:
        return Interval(value, None, None, len(every), METHOD)
    rng = random.Random(seed)
    drawn = [
        statistic([item for items in rng.choices(tasks, k=len(tasks)) for item in items])
        for _ in range(resamples)
    ]
    known = sorted(x for x in drawn if x is not None)
    if len(known) <= resamples / 2:
        return Interval(value, None, None, len(every), METHOD)
    tail = int((1 - level) / 2 * len(known))
    # The estimate belongs to its interval, also where the bootstrap is biased against it.
    low, high = min(value, known[tail]), max(value, known[-1 - tail])
    return Interval(value, low, high, len(every), METHOD)
