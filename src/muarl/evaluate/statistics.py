"""Estimates with intervals. Pure functions on numbers; nothing here knows episodes.

Values come grouped by task, `{task: [value, ...]}`, because episodes of one task are not
independent: an interval that ignores this is too narrow.

Sources:
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22, 209-212.
    Wilson's interval with an effective number of trials: Korn, E. L. and Graubard, B. I. (1998),
        Confidence intervals for proportions with small expected number of positive counts estimated
        from survey data, Survey Methodology 24, 193-201; Dean, N. and Pagano, M. (2015), Evaluating
        confidence interval methods for binomial proportions in clustered surveys, Journal of Survey
        Statistics and Methodology 3, 484-503. What is added here is `_KNOWN`.
    Efron, B. and Tibshirani, R. (1993), An Introduction to the Bootstrap, ch. 13 (percentile
        interval); whole clusters are drawn, as in Davison, A. C. and Hinkley, D. V. (1997),
        Bootstrap Methods and their Application, section 3.8.
    Abramowitz, M. and Stegun, I. (1964), 26.7.3 to 26.7.5 (quantiles of Student's t).
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

_KNOWN = 1.6
"""Tasks with successes (or failures, if they are fewer) at which the data's own word on how alike trials of
a task are counts half. The one free number of these intervals; chosen by `benchmarks/stats.py`."""

FEW = 5
"""Where fewer tasks ever succeeded, or ever failed, an interval need not hold as often as it says: the old
rule for shares, n p of five or more, counted in tasks. `benchmarks/stats.py` says how often they held."""

_ROUNDING = 1e-9


class Interval(msgspec.Struct, frozen=True):
    """An estimate and how far it can be trusted.

    Attributes:
        value: The estimate; None where there was nothing to estimate from.
        low: Lower bound, None likewise, and where all is of one task: how tasks differ, on which
            an interval rests, cannot be seen from one.
        high: Upper bound, None likewise.
        n: Episodes behind it.
        method: "wilson" (independent trials), "wilson by task", "t", "t by task" or "bootstrap by task".
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


def _wilson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
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


def mean_share(values_by_task: Mapping[str, Sequence[float]], *, level: float = LEVEL) -> Interval:
    """Mean of values in [0, 1], such as rewards: Wilson's interval with an effective number of trials.

    One task tried several times has no interval.

    Example:
        30 tasks, each tried 8 times: if the trials of a task always end alike, they count as 30 trials;
        if they are as independent as those of different tasks, as 240.
    """
    tasks = [values for values in values_by_task.values() if values]
    n = sum(map(len, tasks))
    if n == 0:
        return Interval(None, None, None, 0, "wilson by task")
    sums = [math.fsum(values) for values in tasks]
    share = min(1.0, math.fsum(sums) / n)
    if len(tasks) == 1 < n:
        return Interval(share, None, None, n, "wilson by task")
    trials = effective_trials(sums, list(map(len, tasks)))
    low, high = _wilson_bounds(share, trials, level)
    return Interval(share, low, high, n, "wilson by task")


def effective_trials(sums: Sequence[float], sizes: Sequence[int]) -> float:
    """So many independent trials would say as much about the mean as these tasks do.

    For `x_i` the sum of task i's `n_i` values in [0, 1], `N` the sum of `n_i`, `p` the mean, and
    `m = N^2 / sum(n_i^2)`, which is the number of tasks where all were tried as often:

        spread    s = sum((x_i - p n_i)^2) / N^2        variance of p, tasks being drawn
        alike     f = s m / (p (1 - p))                 1 / n_i if trials are independent, 1 if those of
                                                        a task end alike
        known     K = (sum x_i)^2 / sum(x_i^2)          tasks with successes, or with failures
                                                        (`n_i - x_i`) if they are fewer
        trials    m / (w f + 1 - w),   w = K^2 / (K^2 + 1.6^2)

    Near 0 and 1 all is decided by a handful of tasks, in which f is mostly chance; so the fewer they
    are, the more a task counts as one trial, which is the least that it can.

    Args:
        sums: Of each task.
        sizes: How many values each sum is of; none is 0.
    """
    n = sum(sizes)
    share = math.fsum(sums) / n
    squared = sum(size * size for size in sizes)
    tasks = n * n / squared
    variance = share * (1 - share)
    spread = math.fsum((x - share * size) ** 2 for x, size in zip(sums, sizes, strict=True))
    # Where all tasks score alike nothing is seen of how they differ.
    if variance <= _ROUNDING or spread <= _ROUNDING:
        return tasks
    alike = spread * tasks / (n * n * variance)
    lacks = [size - x for x, size in zip(sums, sizes, strict=True)]
    known = min(_effective(sums), _effective(lacks))
    weight = known**2 / (known**2 + _KNOWN**2)
    return tasks / (weight * alike + 1 - weight)


def _effective(amounts: Sequence[float]) -> float:
    """How many equal amounts are as spread out as these (the participation ratio)."""
    return math.fsum(amounts) ** 2 / math.fsum(x * x for x in amounts)


def success_rate(
    successes_by_task: Mapping[str, Sequence[bool]], *, level: float = LEVEL
) -> Interval:
    """Share of episodes that succeeded, with the interval its design allows.

    One episode per task: Wilson. Several: Wilson with an effective number of trials.
    """
    tasks = [list(trials) for trials in successes_by_task.values() if trials]
    n = sum(map(len, tasks))
    if n == len(tasks):
        return wilson(sum(trials[0] for trials in tasks), n, level)
    return mean_share(successes_by_task, level=level)


def too_few(successes_by_task: Mapping[str, Sequence[bool]]) -> str:
    """Why a sample cannot support the level of its success's interval; "" where it can.

    Example:
        "2 of 30 tasks ever failed, too few for an interval of 95 %: ..."
    """
    tasks = [list(trials) for trials in successes_by_task.values() if trials]
    ever = {"succeeded": sum(map(any, tasks)), "failed": sum(not all(trials) for trials in tasks)}
    what, count = min(ever.items(), key=lambda item: item[1])
    if len(tasks) < 2 or count >= FEW:  # of one task nobody asks
        return ""
    return (
        f"{count or 'none'} of {len(tasks)} tasks ever {what}, too few for an interval of 95 %: of simulated "
        "ones like it 85 to 100 % held; more tasks mend that, more dialogues on these do not"
    )


def mean(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of independent values with Student's interval; one value has no interval."""
    n = len(values)
    if n == 0:
        return Interval(None, None, None, 0, "t")
    value = fmean(values)
    if n == 1:
        return Interval(value, None, None, 1, "t")
    half = t_quantile(level, n - 1) * stdev(values) / math.sqrt(n)
    return Interval(value, value - half, value + half, n, "t")


def _normal_quantile(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"a confidence level must be in (0, 1), not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


_MANY = 30
"""Degrees of freedom from which Student's quantiles are a short way from the normal ones."""


def t_quantile(level: float, df: int) -> float:
    """Two-sided quantile of Student's t, right to one part in a million for levels up to 0.999.

    Up to 30 degrees of freedom the t at which its distribution, a sum of powers of a cosine, is `level`
    (Abramowitz and Stegun 26.7.3 and 26.7.4); beyond them the expansion in 1 / df (26.7.5).
    """
    z = _normal_quantile(level)
    if df <= _MANY:
        return _t_of_few(level, df)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term * df**-power for power, term in enumerate(terms))


def _t_of_few(level: float, df: int) -> float:
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if _t_within(angle, df) < level:
            low = angle
        else:
            high = angle
    return math.sqrt(df) * math.tan((low + high) / 2)


def _t_within(angle: float, df: int) -> float:
    """Chance that |t| is below sqrt(df) tan(angle)."""
    cosine = math.cos(angle)
    odd = df % 2
    term, total = (cosine if odd else 1.0), 0.0
    for power in range(odd, df - 1, 2):  # of the cosine
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
