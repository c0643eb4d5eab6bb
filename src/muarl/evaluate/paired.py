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

from muarl.evaluate.statistics import (
    LEVEL,
    RESAMPLES,
    Interval,
    bootstrap_mean,
    mean_share,
    wilson,
)

Trials = Mapping[str, Sequence[bool]]
"""Task to whether each try succeeded."""

Verdict = Literal["kept", "lost", "undecided"]

_BY_TASK = "bootstrap by task"
_ALIKE = "wilson on tasks"
_ROUNDING = 1e-9


def pass_hat(trials: Trials, k: int, *, level: float = LEVEL, seed: int = 0) -> Interval:
    """pass^k with an interval: chance that k trials of a task *all* succeed, mean over tasks.

    Each task's C(c, k) / C(n, k) is an unbiased estimate by itself, so tasks are what is drawn. Those
    with fewer than k trials are left out; `n` is the number of tasks that count.

    Raises:
        ValueError: Unless `k >= 1`.

    Example:
        Tasks with 2 of 4 and 4 of 4 successes: pass^2 is (1 / 6 + 1) / 2.
    """
    if k < 1:
        raise ValueError(f"pass^k needs k >= 1, not {k}")
    of_tasks = {
        task: [math.comb(sum(tries), k) / math.comb(len(tries), k)]
        for task, tries in trials.items()
        if len(tries) >= k
    }
    return mean_share(of_tasks, level=level, seed=seed)


def ks_of(trials: int) -> list[int]:
    """Numbers that pass^k is told for: 1, 2, 4, ... and the number of trials.

    Example:
        >>> ks_of(5)
        [1, 2, 4, 5]
    """
    powers = [2**n for n in range(trials.bit_length())]
    return [*(k for k in powers if k < trials), trials]


def paired_difference(
    first: Trials, second: Trials, *, level: float = LEVEL, seed: int = 0
) -> Interval:
    """Mean over tasks of the difference of their success rates, `first - second`.

    What makes one task easier than another is in both and cancels, so the interval is narrower than
    two separate ones suggest. `n` is the number of tasks. Where all differ alike the bootstrap sees
    no spread; then tasks of another kind, of which there was none among n, are taken to be as many
    as Wilson's bound for 0 of n allows, and as different as can be.
    """
    differences = _gains(first, second, sorted(first.keys() & second.keys()))
    return _mean_difference(differences, level, seed)


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
    tasks = sorted(set.intersection(*(set(cell) for cell in cells)))
    gains = _gains(cells.trained, cells.cold, tasks)
    practised = _gains(cells.trained_practised, cells.cold_practised, tasks)
    gain = _mean_difference(gains, level, seed)
    below = _mean_difference(practised, level, seed)
    kept = _ratio(gains, practised, below, level, seed)
    verdict, why = _verdict(kept, below, least)
    return GainKept(gain, below, kept, least, verdict, why)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several users: lost under one is lost, undecided under one is not kept."""
    if "lost" in verdicts:
        return "lost"
    return "kept" if verdicts and set(verdicts) == {"kept"} else "undecided"


def _gains(first: Trials, second: Trials, tasks: Sequence[str]) -> list[float]:
    return [fmean(first[task]) - fmean(second[task]) for task in tasks]


def _mean_difference(differences: Sequence[float], level: float, seed: int) -> Interval:
    """Mean of one value in [-1, 1] for each task."""
    n = len(differences)
    if n < 2 or not _alike(differences):
        by_task = {str(place): [value] for place, value in enumerate(differences)}
        return bootstrap_mean(by_task, level=level, seed=seed)
    value, others = fmean(differences), _unseen(n, level)
    low, high = value * (1 - others) - others, value * (1 - others) + others
    return Interval(value, min(value, low), max(value, high), n, _ALIKE)


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
