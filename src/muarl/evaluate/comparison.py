"""Whether one policy did better than another on the same tasks, and what this many tasks could show.

The test flips signs: if the two were alike, then on each task either could as well have had the other's
successes, so every pattern of signs of the tasks' differences was equally likely. The p-value is the
share of all patterns whose sum is at least as far from 0 as what was seen; it is counted, not drawn.

Source: Good, P. (2005), Permutation, Parametric, and Bootstrap Tests of Hypotheses, section 3.3;
    Fisher, R. A. (1935), The Design of Experiments, section 21.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import Literal

import msgspec

from muarl.evaluate.paired import differences, mean_difference, standard_error
from muarl.evaluate.pass_k import Trials
from muarl.evaluate.statistics import LEVEL, Interval, t_quantile

POWER = 0.8
"""Chance at which a difference counts as one that the design would have seen."""

_MOST_BITS = 1 << 27
"""Of the numbers that patterns are counted in; beyond it (trials of very different number) they are drawn."""
_DRAWS = 20_000

Found = Literal["higher", "lower", "undecided"]


class Comparison(msgspec.Struct, frozen=True):
    """One minus another, on the tasks of both.

    Attributes:
        success: The difference of success, paired by task.
        p: Two-sided p-value of the sign-flip test; None without a task.
        differ: Tasks on which the two differ: all that the test rests on.
        detectable: Smallest true difference that this many tasks, differing as these do, show in
            four cases of five; None for fewer than two tasks.
        found: "higher" or "lower" where `p` is below 0.05, else "undecided".
        why: What was found, in words; of what is undecided, what the sample could have shown.
    """

    success: Interval
    p: float | None
    differ: int
    detectable: float | None
    found: Found
    why: str


def compared(first: Trials, second: Trials, *, level: float = LEVEL, seed: int = 0) -> Comparison:
    """Compare two policies, users or runs.

    Args:
        first: What is compared.
        second: With what.
        level: Confidence level of the interval; 1 minus it is the level of the test.
        seed: Draws patterns of signs where they are too many to count.
    """
    of_tasks = differences(first, second)
    p = sign_flip_p(of_tasks, seed=seed)
    differ = sum(d != 0 for d in of_tasks)
    success = mean_difference(of_tasks, level=level)
    least = detectable(of_tasks, level=level)
    found: Found = "undecided"
    if p is not None and p < 1 - level:
        found = "higher" if fmean(of_tasks) > 0 else "lower"
    why = _in_words(p, differ, least, found, 1 - level)
    return Comparison(success, p, differ, least, found, why)


def sign_flip_p(of_tasks: Sequence[float], *, seed: int = 0) -> float | None:
    """Two-sided p-value that a mean of independent values is 0, each as likely up as down.

    Exact: sums of all patterns are counted by a polynomial with a term x^|d| + x^-|d| for each task,
    whose coefficients are the digits of one large integer.

    Example:
        Five tasks, all won: of 32 patterns two are as far from 0, so p is 0.0625. Five tasks that
        differ can never show anything at the 0.05 level.
    """
    if not of_tasks:
        return None
    parts = [Fraction(abs(d)).limit_denominator(10_000) for d in of_tasks if d]
    unit = math.lcm(*(part.denominator for part in parts))
    sizes = [int(part * unit) for part in parts]
    seen = abs(round(sum(of_tasks) * unit))
    width = len(sizes) + 1  # bits of a coefficient: none exceeds 2 ** len(sizes)
    most = sum(sizes)
    if 2 * most * width > _MOST_BITS:
        return _drawn(of_tasks, seed)
    counts = 1
    for size in sizes:  # coefficient of x^s moves to s + size and s - size, all shifted by size
        counts = (counts << (2 * size * width)) + counts
    # The digit at place s + most counts patterns of sum s; by symmetry both tails are alike.
    tail = counts >> ((most + seen) * width)
    mask = (1 << width) - 1
    patterns = 0
    while tail:
        patterns += tail & mask
        tail >>= width
    share = Fraction(patterns * (1 if seen == 0 else 2), 1 << len(sizes))
    return 1.0 if seen == 0 else float(min(share, Fraction(1)))


def detectable(
    of_tasks: Sequence[float], *, level: float = LEVEL, power: float = POWER
) -> float | None:
    """The smallest difference that as many tasks, as different, show with this chance.

    `(t[1 - a/2] + t[power]) SE`, for the interval's own standard error: Bloom, H. S. (1995), Minimum
    detectable effects, Evaluation Review 19, 547-556.
    """
    n = len(of_tasks)
    if n < 2:
        return None
    quantiles = t_quantile(level, n - 1) + t_quantile(2 * power - 1, n - 1)
    return quantiles * standard_error(of_tasks)


def _drawn(of_tasks: Sequence[float], seed: int) -> float:
    """Share of drawn patterns, what was seen counted as one of them."""
    rng = random.Random(seed)
    seen = abs(math.fsum(of_tasks)) - 1e-9
    far = 1
    for _ in range(_DRAWS):
        signs = rng.getrandbits(len(of_tasks))
        total = sum(d if signs >> i & 1 else -d for i, d in enumerate(of_tasks))
        far += abs(total) >= seen
    return far / (_DRAWS + 1)


def _in_words(p: float | None, differ: int, least: float | None, found: Found, size: float) -> str:
    if p is None:
        return "no task was scored in both"
    if found != "undecided":
        return f"p = {p:.2g}, on {differ} tasks that differ"
    if 2.0 ** (1 - differ) >= size:
        return (
            f"not supported by the sample: they differ on {differ} tasks, and "
            f"{_needed(size)} that all agree are the fewest that could show anything"
        )
    seen = "" if least is None else f"; below {least:.3f} this many tasks are likely to miss it"
    return f"not shown by the sample: p = {p:.2g}{seen}"


def _needed(size: float) -> int:
    """Tasks that have to differ, all the same way, for p to be below `size`."""
    return math.floor(1 - math.log2(size)) + 1
