"""How likely a difference is by chance: the p-value of two policies' successes on the same tasks.

If the two were alike, what was seen is one of many patterns that were equally likely. The p-value is the share
of them whose sum over tasks is at least as far from 0.

- Where each task was tried as often with both, either could as well have had the other's successes: every
  pattern of signs of the tasks' differences. They are counted, not drawn.
- Where a task was tried more often with one, the rarer outcome weighs more on the side that tried less, and
  signs are no longer as likely either way. Then all that was tried on a task is dealt out again, to each as
  often as it tried; that is as exact, and drawn.

Sources:
    Good, P. (2005), Permutation, Parametric, and Bootstrap Tests of Hypotheses, section 3.3;
    Fisher, R. A. (1935), The Design of Experiments, section 21.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Sequence
from fractions import Fraction

from muarl.evaluate.paired import Rates, differences, differs, tried_in_both

_MOST_BITS = 1 << 27
"""Of the numbers that patterns are counted in; beyond it (trials of very different number) they are drawn."""
DRAWS = 20_000
"""Patterns drawn where they are not counted; p is then off by 0.0015 at 0.05, one standard error."""


def difference_p(first: Rates, second: Rates, *, seed: int = 0, draws: int = DRAWS) -> float | None:
    """Two-sided p-value that the two are alike on each task; None without a task of both.

    Args:
        first: One policy's successes, by task.
        second: The other's.
        seed: Draws patterns where they are not counted.
        draws: How many of these. With few, alarms are no more frequent, and p is coarser.
    """
    if tried_alike(first, second):
        return sign_flip_p(differences(first, second), seed=seed, draws=draws)
    return _dealt_again(first, second, random.Random(seed), draws)


def tried_alike(first: Rates, second: Rates) -> bool:
    """Whether each task of both was tried as often with both."""
    return all(len(first[task]) == len(second[task]) for task in tried_in_both(first, second))


def sign_flip_p(of_tasks: Sequence[float], *, seed: int = 0, draws: int = DRAWS) -> float | None:
    """Two-sided p-value that a mean of independent values is 0, each as likely up as down.

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
        return _drawn(of_tasks, random.Random(seed), draws)
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


def _drawn(of_tasks: Sequence[float], rng: random.Random, draws: int) -> float:
    totals = []
    for _ in range(draws):
        signs = rng.getrandbits(len(of_tasks))
        totals.append(sum(d if signs >> i & 1 else -d for i, d in enumerate(of_tasks)))
    return _share_as_far(totals, math.fsum(of_tasks))


def _dealt_again(first: Rates, second: Rates, rng: random.Random, draws: int) -> float:
    totals = [0.0] * draws
    for task in tried_in_both(first, second):
        if len({*first[task], *second[task]}) > 1:
            totals = list(map(operator.add, totals, _deals(first[task], second[task], rng, draws)))
    return _share_as_far(totals, math.fsum(differences(first, second)))


def _deals(
    first: Sequence[float], second: Sequence[float], rng: random.Random, draws: int
) -> list[float]:
    """Differences of a task, what was tried on it dealt out anew each time.

    Example:
        One success of one try against none of two: a third of the deals gives 1 - 0, the others 0 - 1/2.
    """
    pooled, n, m = [*first, *second], len(first), len(second)
    if not {*pooled} <= {0, 1}:
        whole = math.fsum(pooled)
        parts = (math.fsum(rng.sample(pooled, n)) for _ in range(draws))
        return [part / n - (whole - part) / m for part in parts]
    won = round(math.fsum(pooled))
    counts = range(max(0, won - m), min(n, won) + 1)
    ways = [math.comb(won, c) * math.comb(n + m - won, n - c) for c in counts]
    chances = [way / math.comb(n + m, n) for way in ways]  # whose numerators no float may hold
    return rng.choices([c / n - (won - c) / m for c in counts], chances, k=draws)


def _share_as_far(totals: Sequence[float], seen: float) -> float:
    """What was seen counts as one of those drawn."""
    least = abs(seen) - 1e-9
    return (1 + sum(abs(total) >= least for total in totals)) / (len(totals) + 1)
