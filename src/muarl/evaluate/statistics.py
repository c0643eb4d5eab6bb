"""Estimates with intervals. Pure functions on numbers; nothing here knows episodes.

Values come grouped by task, `{task: [value, ...]}`, because episodes of one task are not
independent: an interval that ignores this is too narrow.

Sources:
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22, 209-212.
    Efron, B. and Tibshirani, R. (1993), An Introduction to the Bootstrap, ch. 13 (percentile
        interval); whole clusters are drawn, as in Davison, A. C. and Hinkley, D. V. (1997),
        Bootstrap Methods and their Application, section 3.8.
    Abramowitz, M. and Stegun, I. (1964), 26.7.5 (quantiles of Student's t).
    Chen et al. (2021), arXiv 2107.03374 (pass@k); Yao et al. (2024), arXiv 2406.12045 (pass^k).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean, stdev

import msgspec

LEVEL = 0.95
"""Confidence level of every interval that does not say otherwise."""

RESAMPLES = 2_000
"""Bootstrap draws: the 2.5 % bound then rests on the 50 smallest of them."""


class Interval(msgspec.Struct, frozen=True):
    """An estimate and how far it can be trusted.

    Attributes:
        value: The estimate; None where there was nothing to estimate from.
        low: Lower bound, None likewise, and where all is of one task: how tasks differ, on which
            an interval rests, cannot be seen from one.
        high: Upper bound, None likewise.
        n: Episodes behind it.
        method: "wilson", "bootstrap by task" or "t".
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str

    def __str__(self) -> str:
        if self.value is None:
            return "unknown"
        if self.low is None or self.high is None:
            return f"{self.value:.3f} (no interval: it is of one task)"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval for a share of independent trials.

    Unlike `p ± z sqrt(p (1 - p) / n)` it stays in [0, 1] and has a width at 0 and 1.

    Raises:
        ValueError: Unless `0 <= successes <= n`.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials")
    if n == 0:
        return Interval(None, None, None, 0, "wilson")
    low, high = _wilson_bounds(successes / n, n, level)
    return Interval(successes / n, low, high, n, "wilson")


def _wilson_bounds(share: float, n: int, level: float) -> tuple[float, float]:
    z = _normal_quantile(level)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # A bound that equals the share, at 0 and 1, must not pass it through rounding.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def bootstrap_mean(
    values_by_task: Mapping[str, Sequence[float]],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean over all values, with a percentile interval that draws whole tasks.

    The same values and seed give the same interval. One task has none.
    """
    sums = [math.fsum(values) for values in values_by_task.values() if values]
    sizes = [len(values) for values in values_by_task.values() if values]
    n = sum(sizes)
    if n == 0:
        return Interval(None, None, None, 0, "bootstrap by task")
    if len(sums) == 1:
        return Interval(sums[0] / n, None, None, n, "bootstrap by task")
    rng = random.Random(seed)
    tasks = range(len(sums))
    means = []
    for _ in range(resamples):
        drawn = rng.choices(tasks, k=len(tasks))
        means.append(sum(map(sums.__getitem__, drawn)) / sum(map(sizes.__getitem__, drawn)))
    means.sort()
    tail = int((1 - level) / 2 * resamples)
    value = math.fsum(sums) / n
    # Rounding in the sums must not leave the estimate outside its own interval.
    low, high = min(value, means[tail]), max(value, means[-1 - tail])
    return Interval(value, low, high, n, "bootstrap by task")


def mean_share(
    values_by_task: Mapping[str, Sequence[float]],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean of values in [0, 1], such as rewards: bootstrapped by task.

    If every task scores alike the bootstrap sees no spread and would claim certainty. Wilson with
    one trial per task, the least information there can be, stands in for it: of all values in
    [0, 1] with that mean, those at the ends spread the most. One task tried several times has no
    interval.
    """
    tasks = [values for values in values_by_task.values() if values]
    shares = {math.fsum(values) / len(values) for values in tasks}
    if len(shares) != 1 or (len(tasks) == 1 and len(tasks[0]) > 1):
        return bootstrap_mean(values_by_task, level=level, resamples=resamples, seed=seed)
    share = shares.pop()
    low, high = _wilson_bounds(share, len(tasks), level)
    return Interval(share, low, high, sum(map(len, tasks)), "wilson")


def success_rate(
    successes_by_task: Mapping[str, Sequence[bool]], *, level: float = LEVEL, seed: int = 0
) -> Interval:
    """Share of episodes that succeeded, with the interval its design allows.

    One episode per task: Wilson. Several: bootstrap by task.
    """
    tasks = [list(trials) for trials in successes_by_task.values() if trials]
    n = sum(map(len, tasks))
    if n == len(tasks):
        return wilson(sum(trials[0] for trials in tasks), n, level)
    return mean_share(successes_by_task, level=level, seed=seed)


def mean(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of independent values with Student's interval; one value has no interval."""
    n = len(values)
    if n == 0:
        return Interval(None, None, None, 0, "t")
    value = fmean(values)
    if n == 1:
        return Interval(value, None, None, 1, "t")
    half = _t_quantile(level, n - 1) * stdev(values) / math.sqrt(n)
    return Interval(value, value - half, value + half, n, "t")


def above_floor(score: float, floor: float) -> float:
    """Share of what a trivial policy leaves to be earned: 0 at the floor, 1 at a score of 1.

    Negative below the floor.

    Raises:
        ValueError: Unless `0 <= floor < 1`.
    """
    if not 0 <= floor < 1:
        raise ValueError(f"a floor must be in [0, 1), not {floor}")
    return (score - floor) / (1 - floor)


def pass_hat_k(trials_by_task: Mapping[str, Sequence[bool]], k: int) -> float:
    """pass^k: chance that k trials of a task *all* succeed, mean over tasks.

    Unbiased: C(c, k) / C(n, k) for c successes of n trials.

    Raises:
        ValueError: If some task has fewer than k trials, or there is no task.
    """
    return fmean(
        math.comb(sum(trials), k) / math.comb(len(trials), k)
        for trials in _with_trials(trials_by_task, k)
    )


def pass_at_k(trials_by_task: Mapping[str, Sequence[bool]], k: int) -> float:
    """pass@k: chance that *some* of k trials of a task succeeds, mean over tasks.

    Unbiased: 1 - C(n - c, k) / C(n, k).

    Raises:
        ValueError: If some task has fewer than k trials, or there is no task.
    """
    return fmean(
        1 - math.comb(len(trials) - sum(trials), k) / math.comb(len(trials), k)
        for trials in _with_trials(trials_by_task, k)
    )


def _with_trials(trials_by_task: Mapping[str, Sequence[bool]], k: int) -> list[Sequence[bool]]:
    if k < 1 or not trials_by_task:
        raise ValueError(f"pass^k and pass@k need k >= 1 and a task; k is {k}")
    for task, trials in trials_by_task.items():
        if len(trials) < k:
            raise ValueError(f"task {task!r} has {len(trials)} trials, k = {k} needs as many")
    return list(trials_by_task.values())


def _normal_quantile(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"a confidence level must be in (0, 1), not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def _t_quantile(level: float, df: int) -> float:
    """Two-sided quantile of Student's t.

    Closed form for 1 and 2 degrees of freedom; from 3 on the expansion in 1 / df, wrong by less
    than 0.2 % at the 95 % level.
    """
    z = _normal_quantile(level)
    if df == 1:
        return math.tan(math.pi * level / 2)
    if df == 2:
        return level * math.sqrt(2 / (1 - level * level))
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term * df**-power for power, term in enumerate(terms))
