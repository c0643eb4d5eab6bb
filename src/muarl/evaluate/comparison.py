"""Whether one policy did better than another on the same tasks, and what this many tasks could show.

Whether a difference is chance is said by `muarl.evaluate.permutation`.

Of several comparisons that are told together some are small by chance. Holm's adjustment keeps the chance
that any of those without a difference is called one at that of a single test, however they hang together.

Sources:
    Holm, S. (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
        Statistics 6, 65-70.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal

import msgspec
from msgspec import structs

from muarl.evaluate.paired import Rates, differences, differs, mean_difference, standard_error
from muarl.evaluate.permutation import difference_p, tried_alike
from muarl.evaluate.statistics import LEVEL, Interval, t_quantile

POWER = 0.8
"""Chance at which a difference counts as one that the design would have seen."""

Found = Literal["higher", "lower", "undecided"]


class Comparison(msgspec.Struct, frozen=True):
    """One minus another, on the tasks of both.

    Attributes:
        success: The difference of success, paired by task.
        p: Two-sided p-value that both are alike on each task; None without a task.
        adjusted: The same, adjusted by Holm for the comparisons that are told together.
        together: How many these are, those without a task left out.
        differ: Tasks on which the two differ: all that the test rests on where each was tried as often
            with both.
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
        seed: Draws patterns where they are too many to count.

    Example:
        Of six comparisons the least p is 0.02: six times that is 0.12, and nothing is found.
    """
    each = [differences(first, second) for first, second in pairs]
    ps = [difference_p(first, second, seed=seed) for first, second in pairs]
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
        others = ps[:number] + ps[number + 1 :]
        by_signs = tried_alike(*pairs[number])
        comparisons.append(structs.replace(one, why=_in_words(one, others, size, by_signs)))
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


def _fewest(others: Sequence[float | None], size: float) -> int:
    """Tasks that have to differ, all the same way, for the adjusted p to be below `size` beside others.

    Example:
        Alone six, for 2 / 2^6 is 0.031; beside five that show nothing eight, for 6 * 2 / 2^8 is 0.047.
    """
    tasks = 1
    while (adjusted := holm([*others, 2.0 ** (1 - tasks)])[-1]) is not None and adjusted >= size:
        tasks += 1
    return tasks


def _in_words(one: Comparison, others: Sequence[float | None], size: float, by_signs: bool) -> str:
    if one.p is None or one.adjusted is None:
        return "no task was scored in both"
    p = f"p = {one.p:.2g}"
    if one.together > 1:
        p += f" ({one.adjusted:.2g} as one of {one.together})"
    if one.found != "undecided":
        return f"{p}, on {_tasks(one.differ)} that differ"
    # Trials that are dealt out again may show something on a single task.
    if by_signs and one.differ < (alone := _fewest([], size)):
        return (
            f"not supported by the sample: they differ on {_tasks(one.differ)}, and "
            f"{alone} that all agree are the fewest that could show anything"
        )
    if by_signs and one.differ < (fewest := _fewest(others, size)):
        return (
            f"not supported by the sample: {p}, on {_tasks(one.differ)} that differ, and "
            f"{fewest} that all agree are the fewest that could show anything beside the others"
        )
    seen = "" if one.detectable is None else f"; below {one.detectable:.3f} this many tasks"
    return f"not shown by the sample: {p}{seen and seen + ' are likely to miss it'}"


def _tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"
