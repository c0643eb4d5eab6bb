"""pass^k and pass@k: what several dialogues on the same task say together.

For c successes in n trials of a task, `C(c, k) / C(n, k)` of the ways to draw k of the trials draw
successes only, and `C(n - c, k) / C(n, k)` draw failures only. Either is an unbiased estimate for its
task by itself, whatever the task's chance is, so the mean over tasks is, too.

Sources:
    Yao et al. (2024), tau-bench, arXiv 2406.12045 (pass^k).
    Chen et al. (2021), Evaluating large language models trained on code, arXiv 2107.03374 (pass@k).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from muarl.evaluate.statistics import LEVEL, Interval, mean_share

Trials = Mapping[str, Sequence[bool]]
"""Task to whether each try succeeded."""


def pass_hat(
    trials: Trials, k: int, *, others: Sequence[Trials] = (), level: float = LEVEL
) -> Interval:
    """pass^k: the chance that k trials of a task *all* succeed, mean over tasks.

    Tasks with fewer than k trials are left out; `n` is the number of tasks that count, of each training.

    Args:
        trials: Of one policy.
        k: How many are drawn.
        others: Of further trainings of it; no k trials are of two of them.
        level: Confidence level.

    Raises:
        ValueError: Unless `k >= 1`.

    Example:
        Tasks with 2 of 4 and 4 of 4 successes: pass^2 is (1 / 6 + 1) / 2.
    """
    return _over_tasks([trials, *others], k, lambda c, n: math.comb(c, k) / math.comb(n, k), level)


def pass_at(
    trials: Trials, k: int, *, others: Sequence[Trials] = (), level: float = LEVEL
) -> Interval:
    """pass@k: the chance that *some* of k trials of a task succeeds, mean over tasks.

    Tasks with fewer than k trials are left out; `n` is the number of tasks that count, of each training.

    Args:
        trials: Of one policy.
        k: How many are drawn.
        others: Of further trainings of it; no k trials are of two of them.
        level: Confidence level.

    Raises:
        ValueError: Unless `k >= 1`.

    Example:
        Tasks with 1 of 4 and 4 of 4 successes: pass@2 is (1 - 3 / 6 + 1) / 2.
    """
    return _over_tasks(
        [trials, *others], k, lambda c, n: 1 - math.comb(n - c, k) / math.comb(n, k), level
    )


def ks_of(trials: int) -> list[int]:
    """Numbers k that are told: 1, 2, 4, ... and the number of trials.

    Example:
        >>> ks_of(5)
        [1, 2, 4, 5]
    """
    powers = [2**n for n in range(trials.bit_length())]
    return [*(k for k in powers if k < trials), trials]


def _over_tasks(
    each: Sequence[Trials], k: int, of_task: Callable[[int, int], float], level: float
) -> Interval:
    if k < 1:
        raise ValueError(f"pass^k and pass@k need k >= 1, not {k}")
    of_tasks: defaultdict[str, list[float]] = defaultdict(list)
    for trials in each:
        for task, tries in trials.items():
            if len(tries) >= k:
                of_tasks[task].append(of_task(sum(tries), len(tries)))
    return mean_share(of_tasks, level=level)
