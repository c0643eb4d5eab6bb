"""What several trainings of one kind, each with another seed, say of a further one.

An interval over tasks is of these very weights: on other tasks they would do so well. How well another
training would do on these tasks is seen from several alone, so that here a training counts as one value,
however many dialogues are behind it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev, variance

import msgspec

from muarl.evaluate.statistics import LEVEL, Interval, t_quantile

METHOD = "t by training"
ONE = "one training seed: says nothing of another"


class Trainings(msgspec.Struct, frozen=True):
    """Of one kind of training, or of two.

    Attributes:
        mean: Of the trainings; its `n` is their number, of two kinds that of the kind with fewer.
        low: The least of them; of two kinds, where each of one stands beside one of the other.
        high: The most, likewise.
        says: The same in words, and what cannot be said.
    """

    mean: Interval
    low: float | None
    high: float | None
    says: str


def over_trainings(by_seed: Mapping[int, float], *, level: float = LEVEL) -> Trainings:
    """The mean of trainings, with Student's interval.

    Where all came out alike nothing is seen of how they differ, and no interval is given.

    Args:
        by_seed: A training's seed to its success.
        level: Confidence level.

    Example:
        Three seeds that reached 0.90, 0.94 and 0.95: 0.930 [0.864, 0.996].
    """
    return _of_values(list(by_seed.values()), 0.0, level)


def between_trainings(
    first: Mapping[int, float], second: Mapping[int, float], *, level: float = LEVEL
) -> Trainings:
    """The mean of one kind of training minus that of another.

    Trainings with the same seeds are paired. Else the interval is Welch's: Welch, B. L. (1947), The
    generalization of "Student's" problem when several different population variances are involved,
    Biometrika 34, 28-35.
    """
    if first.keys() == second.keys():
        return _of_values([first[seed] - second[seed] for seed in first], -1.0, level)
    n = min(len(first), len(second))
    if n == 0:
        return _of_values([], -1.0, level)
    difference = fmean(first.values()) - fmean(second.values())
    if n == 1:
        return Trainings(Interval(difference, None, None, 1, METHOD), None, None, ONE)
    parts = [variance(kind.values()) / len(kind) for kind in (first, second)]
    if not (squared := math.fsum(parts)):
        return _alike(difference, n)
    freedom = squared**2 / math.fsum(
        part**2 / (len(kind) - 1) for part, kind in zip(parts, (first, second), strict=True)
    )
    half = t_quantile(level, math.floor(freedom + 1e-9)) * math.sqrt(squared)
    return _told(difference, half, n, -1.0, None)


def _of_values(values: Sequence[float], least: float, level: float) -> Trainings:
    n = len(values)
    if n == 0:
        return Trainings(Interval(None, None, None, 0, METHOD), None, None, "no training is known")
    if n == 1:
        only = values[0]
        return Trainings(Interval(only, None, None, 1, METHOD), only, only, ONE)
    if max(values) - min(values) < 1e-9:
        return _alike(values[0], n)
    half = t_quantile(level, n - 1) * stdev(values) / math.sqrt(n)
    return _told(fmean(values), half, n, least, (min(values), max(values)))


def _told(
    value: float, half: float, n: int, least: float, ends: tuple[float, float] | None
) -> Trainings:
    mean = Interval(value, max(least, value - half), min(1.0, value + half), n, METHOD)
    low, high = ends or (None, None)
    between = "" if ends is None else f", from {low:.3f} to {high:.3f}"
    return Trainings(mean, low, high, f"{mean} over {n} training seeds{between}")


def _alike(value: float, n: int) -> Trainings:
    says = f"{n} training seeds came out alike: how far another would be is not seen"
    return Trainings(Interval(value, None, None, n, METHOD), value, value, says)
