"""Comparisons on the same tasks: paired differences, and how much of a gain is kept elsewhere.

Pure functions on numbers, as `muarl.evaluate.statistics`, whose sources hold here too. A policy under a
user is `{task: [succeeded, ...]}`. Tasks weigh the same, however often they were tried, and only those
count that were tried in everything that is compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

import msgspec

from muarl.evaluate.pass_k import Trials
from muarl.evaluate.statistics import (
    LEVEL,
    RESAMPLES,
    Interval,
    t_quantile,
    wilson,
)

Rates = Mapping[str, Sequence[float]]
"""Task to values in [0, 1] whose mean is its success rate, such as its `Trials`."""

Verdict = Literal["kept", "lost", "undecided"]

_STUDENT = "t by task"
_BY_TASK = "bootstrap by task"
_ALIKE = "wilson on tasks"
_ROUNDING = 1e-9


def paired_difference(first: Trials, second: Trials, *, level: float = LEVEL) -> Interval:
    """Mean over tasks of the difference of their success rates, `first - second`.

    What makes one task easier than another is in both and cancels, so the interval is narrower than
    two separate ones suggest. `n` is the number of tasks. It is Student's; its spread is that of the
    tasks and of two more, that differ up and down as those do that differ at all, for a few tasks that
    differ say little of how much others would: Bonett, D. G. and Price, R. M. (2012), Adjusted Wald
    confidence interval for a difference of binomial proportions based on paired data, Journal of
    Educational and Behavioral Statistics 37, 479-488. Where all differ alike there is no spread; then
    tasks of another kind, of which there was none among n, are taken to be as many as Wilson's bound for
    0 of n allows, and as different as can be.
    """
    return mean_difference(differences(first, second), level=level)


def differences(first: Rates, second: Rates) -> list[float]:
    """Success rate in the first minus that in the second, of each task that was tried in both."""
    return _gains(first, second, tried_in_both(first, second))


def differs(difference: float) -> bool:
    """Whether it is more than the rounding of two rates that are the same."""
    return abs(difference) > _ROUNDING


def standard_error(of_tasks: Sequence[float]) -> float:
    """Of the mean of at least one difference; see `paired_difference`."""
    n = len(of_tasks) + 2
    squares = math.fsum(d * d for d in of_tasks)
    differ = sum(map(differs, of_tasks))
    added = 2 * squares / differ if differ else 2.0
    variance = (squares + added) / n - (math.fsum(of_tasks) / n) ** 2
    return math.sqrt(variance / (n - 1))


def tried_in_both(first: Rates, second: Rates) -> list[str]:
    """The tasks that count."""
    return sorted(_tried(first) & _tried(second))


def _tried(trials: Rates) -> set[str]:
    return {task for task, tries in trials.items() if tries}


class GainKept(msgspec.Struct, frozen=True):
    """How much of what training gained is there under another user too.

    Attributes:
        gain: (trained - cold) under the evaluation user.
        practised: (trained - cold) under the user that it was trained with, on the same tasks.
        kept: The first by the second. Without bounds where `practised` may be 0, and without a value
            where it is not above 0.
        least: Share that has to be kept.
        verdict: "kept" or "lost" where the whole interval is on that side of `least`.
        why: The verdict in words.
    """

    gain: Interval
    practised: Interval
    kept: Interval
    least: float
    verdict: Verdict
    why: str


class FourCells(NamedTuple):
    """Both policies under both users.

    Attributes:
        trained: The trained policy under the evaluation user.
        cold: The policy it began as, under the evaluation user.
        trained_practised: The trained policy under the user it was trained with.
        cold_practised: The policy it began as, under that user.
    """

    trained: Trials
    cold: Trials
    trained_practised: Trials
    cold_practised: Trials


def gain_kept(
    cells: FourCells, *, least: float = 0.8, level: float = LEVEL, seed: int = 0
) -> GainKept:
    """The ratio of two gains, with an interval that draws whole tasks, all four cells of each.

    A ratio is only as good as what it is divided by: if the interval of the gain under the training
    user includes 0, no interval of the ratio is given, and nothing is decided.

    Args:
        cells: Successes of both policies under both users.
        least: Share that has to be kept.
        level: Confidence level.
        seed: Draws the bootstraps.

    Example:
        Training gained 0.5 under its own user and 0.45 under another: 0.9 of it is kept.
    """
    tasks = sorted(set.intersection(*(_tried(cell) for cell in cells)))
    gains = _gains(cells.trained, cells.cold, tasks)
    practised = _gains(cells.trained_practised, cells.cold_practised, tasks)
    gain = mean_difference(gains, level=level)
    below = mean_difference(practised, level=level)
    kept = _ratio(gains, practised, below, level, seed)
    verdict, why = _verdict(kept, below, least)
    return GainKept(gain, below, kept, least, verdict, why)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several users: lost under one is lost, undecided under one is not kept."""
    if "lost" in verdicts:
        return "lost"
    return "kept" if verdicts and set(verdicts) == {"kept"} else "undecided"


def _gains(first: Rates, second: Rates, tasks: Sequence[str]) -> list[float]:
    return [fmean(first[task]) - fmean(second[task]) for task in tasks]


def mean_difference(of_tasks: Sequence[float], *, level: float = LEVEL) -> Interval:
    """Mean of one value in [-1, 1] for each task; see `paired_difference`."""
    n = len(of_tasks)
    if n == 0:
        return Interval(None, None, None, 0, _STUDENT)
    value = fmean(of_tasks)
    if n == 1:
        return Interval(value, None, None, 1, _STUDENT)
    if _alike(of_tasks):
        others = _unseen(n, level)
        low, high = value * (1 - others) - others, value * (1 - others) + others
        return Interval(value, min(value, low), max(value, high), n, _ALIKE)
    half = t_quantile(level, n - 1) * standard_error(of_tasks)
    return Interval(value, max(-1.0, value - half), min(1.0, value + half), n, _STUDENT)


def _ratio(
    gains: Sequence[float], practised: Sequence[float], below: Interval, level: float, seed: int
) -> Interval:
    n = len(gains)
    if below.value is None or below.value <= 0:
        return Interval(None, None, None, n, _BY_TASK)
    value = fmean(gains) / below.value
    if below.low is None or below.low <= 0:
        return Interval(value, None, None, n, _BY_TASK)
    if _alike([g - value * p for g, p in zip(gains, practised, strict=True)]):
        # A task of another kind may gain -1 here where it gained 1 there.
        half = _unseen(n, level) * (1 + abs(value)) / below.value
        return Interval(value, value - half, value + half, n, _ALIKE)
    rng = random.Random(seed)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(range(n), k=n)
        divisor = math.fsum(map(practised.__getitem__, drawn))
        # Its interval is above 0, so a draw of 0 or less is among the rarest; it bounds nothing.
        ratios.append(
            math.fsum(map(gains.__getitem__, drawn)) / divisor if divisor > 0 else math.inf
        )
    ratios.sort()
    tail = int((1 - level) / 2 * RESAMPLES)
    low, high = min(value, ratios[tail]), max(value, ratios[-1 - tail])
    return Interval(value, low, high, n, _BY_TASK)


def _verdict(kept: Interval, below: Interval, least: float) -> tuple[Verdict, str]:
    if below.value is None:
        return "undecided", "no task was scored in all four cells"
    if kept.value is None:
        return "undecided", f"nothing to keep: training gained {below} under its own user"
    if kept.low is None or kept.high is None:
        return (
            "undecided",
            f"the gain under the training user, {below}, may be 0: a ratio to it says nothing",
        )
    if kept.low >= least:
        return "kept", f"at least {kept.low:.0%} of the gain is kept"
    if kept.high < least:
        return "lost", f"at most {kept.high:.0%} of the gain is kept"
    return "undecided", f"{kept.low:.0%} to {kept.high:.0%} of the gain is kept: play more tasks"


def _alike(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= _ROUNDING


def _unseen(n: int, level: float) -> float:
    """Share of tasks of a kind that none of n was of, at most."""
    high = wilson(0, n, level).high
    assert high is not None  # there is a task
    return high
