"""What tasks are drawn by: success near one half, class of failure, length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from muarl.curriculum.seen import Estimate, Seen
from muarl.spec import TaskSpec
from muarl.spec.curriculum import FailuresCurriculum, HalfCurriculum, HorizonCurriculum


def half(
    tasks: Sequence[TaskSpec], iteration: int, seen: Seen, spec: HalfCurriculum
) -> list[float]:
    """Expected variance of a task's reward, to a power.

    With s rewards earned and f missed, success p has the distribution Beta(1 + s, 1 + f), and

        E[p(1 - p)] = (1 + s)(1 + f) / ((2 + s + f)(3 + s + f))

    which is 1/6 for a task that nobody has played, up to 1/4 for one that half solve, and goes to 0 as
    more and more of one task's dialogues end alike. A group's gradient grows with that variance.

    Example: 4 of 8 solved: 25/110 = 0.227; 0 of 8: 9/110 = 0.082.
    """

    def weight(known: Estimate | None) -> float:
        s, f = (0.0, 0.0) if known is None else (known.solved, known.failed)
        variance = (1 + s) * (1 + f) / ((2 + s + f) * (3 + s + f))
        return float((4 * variance) ** spec.sharpness)

    return [weight(seen.of(task, iteration)) for task in tasks]


def failures(
    tasks: Sequence[TaskSpec], iteration: int, seen: Seen, spec: FailuresCurriculum
) -> list[float]:
    """For each class of failure the same mass, shared out by how often tasks fail so.

        weight of a task = sum over classes c of  w_c · rate_c(task) / sum over tasks of rate_c

    Tasks that nobody has played get the mean of the others; where none has failed, all are alike.

    Example: of three tasks one always stops early, two always invent: weights 1, 1/2, 1/2.
    """
    known = [seen.of(task, iteration) for task in tasks]
    rates: list[dict[str, float]] = []
    total: defaultdict[str, list[float]] = defaultdict(list)
    for estimate in known:
        count = 0.0 if estimate is None else estimate.solved + estimate.failed
        mine = {
            name: number / count
            for name, number in (estimate.classes if estimate is not None else {}).items()
            if count and spec.weights.get(name, 1.0)
        }
        rates.append(mine)
        for name, rate in mine.items():
            total[name].append(rate)
    sums = {name: math.fsum(values) for name, values in total.items()}
    weights = [
        math.fsum(
            spec.weights.get(name, 1.0) * rate / sums[name] for name, rate in mine.items() if rate
        )
        for mine in rates
    ]
    played = [w for w, estimate in zip(weights, known, strict=True) if estimate is not None]
    mean = math.fsum(played) / len(played) if played else 0.0
    if not mean:
        return [1.0] * len(tasks)
    return [mean if e is None else w for w, e in zip(weights, known, strict=True)]


def horizon(tasks: Sequence[TaskSpec], iteration: int, spec: HorizonCurriculum) -> list[float]:
    """1 for tasks of at most so many gold calls, else 0; the limit rises to the longest task.

    Example: begin 1, 10 iterations, longest 3: up to 1 call, from iteration 5 on 2, from 10 on 3.
    """
    longest = max((len(task.gold) for task in tasks), default=0)
    share = min(1.0, iteration / spec.iterations)
    limit = max(spec.begin, math.floor(spec.begin + (longest - spec.begin) * share))
    return [float(len(task.gold) <= limit) for task in tasks]
