"""Whether one policy did better than another on the same tasks, and what this many tasks could show.

The test flips signs: if the two were alike, then on each task either could as well have had the other's
successes, so every pattern of signs of the tasks' differences was equally likely. The p-value is the
share of all patterns whose sum is at least as far from 0 as what was seen; it is counted, not drawn.

Of several comparisons that are told together some are small by chance. Holm's adjustment keeps the chance
that any of those without a difference is called one at that of a single test, however they hang together.

Sources:
    Good, P. (2005), Permutation, Parametric, and Bootstrap Tests of Hypotheses, section 3.3;
    Fisher, R. A. (1935), The Design of Experiments, section 21.
    Holm, S. (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
        Statistics 6, 65-70.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import Literal

import msgspec
from msgspec import structs

from muarl.evaluate.paired import Rates, differences, differs, mean_difference, standard_error
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
        adjusted: The same, adjusted by Holm for the comparisons that are told together.
        together: How many these are, those without a task left out.
        differ: Tasks on which the two differ: all that the test rests on.
        detectable: Smallest true difference that this many tasks, differing as these do, show in
            four cases of five, whatever the other comparisons show; None for fewer than two tasks.
        found: "higher" or "lower" where `adjusted` is below 0.05, else "undecided".
        why: What was found, in words; of what is undecided, what the sample could have shown.
    """

    success: Interval
    p: float | None
    adjusted: float | None
    together: int
    differ: int
    detectable: float | None
    found: Found
    why: str


def compared(first: Rates, second: Rates, *, level: float = LEVEL, seed: int = 0) -> Comparison:
    """Compare two policies, users or runs by themselves; see `compared_together`."""
    return compared_together([(first, second)], level=level, seed=seed)[0]


def compared_together(
    pairs: Sequence[tuple[Rates, Rates]], *, level: float = LEVEL, seed: int = 0
) -> list[Comparison]:
    """Compare pairs of policies, users or runs, all of whose comparisons are told together.

    Args:
        pairs: What is compared, with what.
        level: Confidence level of each interval; 1 minus it is the level of all tests together.
        seed: Draws patterns of signs where they are too many to count.

    Example:
        Of six comparisons the least p is 0.02: six times that is 0.12, and nothing is found.
    """
    each = [differences(first, second) for first, second in pairs]
    ps = [sign_flip_p(of_tasks, seed=seed) for of_tasks in each]
    together = sum(p is not None for p in ps)
    size = 1 - level
    comparisons = []
    for number, (of_tasks, p, adjusted) in enumerate(zip(each, ps, holm(ps), strict=True)):
        least = detectable(of_tasks, level=1 - size / max(1, together))
        found: Found = "undecided"
        if adjusted is not None and adjusted < size:
            found = "higher" if fmean(of_tasks) > 0 else "lower"
        one = Comparison(
            success=mean_difference(of_tasks, level=level),
            p=p,
            adjusted=adjusted,
            together=together,
            differ=sum(map(differs, of_tasks)),
            detectable=least,
            found=found,
            why="",
        )
        fewest = _fewest(ps[:number] + ps[number + 1 :], size)
        comparisons.append(structs.replace(one, why=_in_words(one, fewest, size)))
    return comparisons


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values, in the same order; None stays None, and does not count.

    That of the k-th smallest of m is the largest of `(m - j + 1) p_j`, j up to k, and no more than 1.

    Example:
        >>> holm([0.04, 0.01, None, 0.03])
        [0.06, 0.03, None, 0.06]
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    so_far = 0.0
    for done, (p, place) in enumerate(known):
        so_far = min(1.0, max(so_far, (len(known) - done) * p))
        adjusted[place] = so_far
    return adjusted


def sign_flip_p(of_tasks: Sequence[float], *, seed: int = 0) -> float | None:
    """Two-sided p-value that a mean of independent values is 0, each as likely up as down.

    Differences of rates are so where a task was tried as often in both. Of rates near 0 or 1 of very unequal
    numbers of trials they are not, and p is then too small: docs/evaluation.md says by how much.

    Exact: sums of all patterns are counted by a polynomial with a term x^|d| + x^-|d| for each task,
    whose coefficients are the digits of one large integer.

    Example:
        Five tasks, all won: of 32 patterns two are as far from 0, so p is 0.0625. Five tasks that
        differ can never show anything at the 0.05 level.
    """
    if not of_tasks:
        return None
    parts = [Fraction(d).limit_denominator(10_000) for d in of_tasks if differs(d)]
    unit = math.lcm(*(part.denominator for part in parts))
    signed = [int(part * unit) for part in parts]
    sizes, seen = list(map(abs, signed)), abs(sum(signed))
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


def _fewest(others: Sequence[float | None], size: float) -> int:
    """Tasks that have to differ, all the same way, for the adjusted p to be below `size` beside others.

    Example:
        Alone six, for 2 / 2^6 is 0.031; beside five that show nothing eight, for 6 * 2 / 2^8 is 0.047.
    """
    tasks = 1
    while (adjusted := holm([*others, 2.0 ** (1 - tasks)])[-1]) is not None and adjusted >= size:
        tasks += 1
    return tasks


def _in_words(one: Comparison, fewest: int, size: float) -> str:
    if one.p is None or one.adjusted is None:
        return "no task was scored in both"
    p = f"p = {one.p:.2g}"
    if one.together > 1:
        p += f" ({one.adjusted:.2g} as one of {one.together})"
    if one.found != "undecided":
        return f"{p}, on {_tasks(one.differ)} that differ"
    if one.differ < (alone := _fewest([], size)):
        return (
            f"not supported by the sample: they differ on {_tasks(one.differ)}, and "
            f"{alone} that all agree are the fewest that could show anything"
        )
    if one.differ < fewest:
        return (
            f"not supported by the sample: {p}, on {_tasks(one.differ)} that differ, and "
            f"{fewest} that all agree are the fewest that could show anything beside the others"
        )
    seen = "" if one.detectable is None else f"; below {one.detectable:.3f} this many tasks"
    return f"not shown by the sample: {p}{seen and seen + ' are likely to miss it'}"


def _tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"
