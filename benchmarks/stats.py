"""Do the intervals of `muarl eval` hold as often as they say, and its test no more often than it says?

    python benchmarks/stats.py --json

Needs no model. Simulates evaluations whose truth is known, and asks the very functions that `muarl eval`
asks. `coverage` is of the 330 conditions on which the one free number of the intervals was chosen: 30, 50 and
115 tasks (the last two are those of tau-bench), 1 to 8 trials, five levels, four correlations, two laws of
difficulty. `held_out` is of 480 others, on which nothing was chosen and none of which is among those: other
numbers of tasks and trials, also a number of its own for each task, and other laws; see `_simulated_worlds`.

In every simulated evaluation the level is drawn evenly from its band. Successes are whole numbers, so at one
exact level the coverage of any interval jumps up and down with it by some hundredths (Brown, Cai and
DasGupta, 2001, Statistical Science 16, 101-133); what is told is the mean over a band that is narrower than
any interval of these designs. Near 0 is 0.02 to 0.10: 30 tasks then show 0.6 to 3 successes at one trial
each. Nothing is left out of the least and the most of `coverage` and `held_out`. pass^k, scores above a floor,
paired differences and tests stand beside them; those of pass^k leave out worlds in which it is below 0.02,
where 30 tasks see none at all.

`unequal_false_positive` is that of pairs that tried tasks in unequal numbers: once against eight times, and four
times against what faults leave.

`held_out_outside` says of which conditions the coverage is below 0.93 or above 0.97, by law of difficulty and
level. `few_coverage` is that of the evaluations in which fewer than five tasks ever succeeded, or ever failed,
which `muarl eval` says of its own; of conditions that have 300 such evaluations. `--held-out` is these alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from multiprocessing import Pool
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
from _simulated_worlds import (
    BANDS,
    UNEVEN,
    Draws,
    Sums,
    World,
    chances,
    chosen_on,
    held_out,
    play,
    power_mean,
    tried,
    truth,
)

from muarl.evaluate.comparison import holm
from muarl.evaluate.floor import above_floor
from muarl.evaluate.paired import paired_difference
from muarl.evaluate.pass_k import Trials, pass_at, pass_hat
from muarl.evaluate.permutation import difference_p
from muarl.evaluate.statistics import FEW, Interval, success_rate

TOLD = 0.02
"""Of pass^k: below it 30 tasks see mostly none."""
CHECKED = 25
"""Evaluations of each condition on which what is computed at once is held against `muarl.evaluate`."""
PAIRED = ((0.0, "beta"), (0.3, "two"))
"""Correlations and kinds of tasks at which pairs are compared: the test is exact in every world."""
UNEQUAL = ((12, 1, 8), (30, 1, 8), (30, 4, UNEVEN))
"""Tasks, and how often either of two tried each; the test then deals tries out again."""
LEAST_SEEN = 300
"""Evaluations with few deciding tasks from which on a condition's share of them that held is told."""
TOGETHER = 6
"""Comparisons that are told together: seven policies, each with the first."""

Found = Sequence[tuple[Any, dict[str, float]]]


def intervals(sums: Draws, sizes: Draws) -> tuple[Draws, Draws]:
    """`mean_share` of many evaluations at once: [evaluation, task] sums, of so many values each.

    Only so that ten thousand evaluations of each condition take seconds; `same` holds it against
    `mean_share` itself.
    """
    n, total = sizes.sum(axis=1), sums.sum(axis=1)
    share = total / n
    tasks = n**2 / (sizes**2).sum(axis=1)
    variance = share * (1 - share)
    spread = ((sums - share[:, None] * sizes) ** 2).sum(axis=1)
    seen = (variance > 1e-9) & (spread > 1e-9)
    alike = np.divide(spread * tasks, n**2 * variance, out=np.ones_like(share), where=seen)
    known = np.minimum(_effective(sums), _effective(sizes - sums))
    weight = known**2 / (known**2 + 1.6**2)
    trials = np.where(seen, tasks / (weight * alike + 1 - weight), tasks)
    z = NormalDist().inv_cdf(0.975)
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * np.sqrt(variance / trials + z * z / (4 * trials * trials))
    return np.minimum(centre - half, share), np.maximum(centre + half, share)


def _effective(amounts: Draws) -> Draws:
    squares = (amounts**2).sum(axis=1)
    total = amounts.sum(axis=1) ** 2
    return np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)


def same(
    at_once: tuple[Draws, Draws], one_by_one: Callable[[Trials], Interval], sums: Sums
) -> None:
    """Stop unless what was computed at once is what the functions of `muarl eval` say."""
    low, high = at_once
    for number, trials in enumerate(play(sums)):
        found = one_by_one(trials)
        assert found.low is not None
        assert found.high is not None
        gap = max(abs(found.low - low[number]), abs(found.high - high[number]))
        assert gap < 1e-6, (found, low[number], high[number])


def of_success(world: World, draws: int, seed: int) -> dict[str, float]:
    """How often each interval holds, of one world."""
    rng = np.random.default_rng([seed, *str(world).encode()])
    levels = rng.uniform(*BANDS[world.band], draws)
    sums = tried(world, chances(world, levels, rng), rng)
    few = Sums(sums.successes[:CHECKED], sums.sizes[:CHECKED])
    low, high = intervals(sums.successes.astype(float), sums.sizes.astype(float))
    same((low[:CHECKED], high[:CHECKED]), success_rate, few)
    right = truth(world, levels)
    held = (low <= right) & (right <= high)
    found = {"success": float(np.mean(held))}
    ever = (sums.successes > 0).sum(axis=1), (sums.successes < sums.sizes).sum(axis=1)
    thin = np.minimum(*ever) < FEW
    if thin.sum() >= LEAST_SEEN:
        found["few"] = float(np.mean(held[thin]))
    if world.trials == UNEVEN:
        return found
    for k in (k for k in (2, 4, 8) if k <= world.trials):
        right = power_mean(world, levels, k)
        if right.mean() < TOLD:
            continue
        n = world.trials
        of_count = np.array([math.comb(c, k) / math.comb(n, k) for c in range(n + 1)])
        values = of_count[sums.successes]
        low, high = intervals(values, np.ones_like(values))
        same((low[:CHECKED], high[:CHECKED]), partial(pass_hat, k=k), few)
        found[f"pass^{k}"] = float(np.mean((low <= right) & (right <= high)))
    return found


def of_pair(world: World, draws: int, seed: int) -> dict[str, float]:
    """Of policies on the same tasks: false alarms of the test, coverage of differences and above a floor.

    The floor is a policy that always succeeds on one task in ten, and never on another: on those by chance,
    or on those that are the easiest for the policy as well.
    """
    rng = np.random.default_rng([seed, 1, *str(world).encode()])
    levels = rng.uniform(*BANDS[world.band], draws)
    of_tasks = chances(world, levels, rng)
    first, second = (tried(world, of_tasks, rng) for _ in range(2))
    # The better policy fails a third as often on every task.
    better = tried(world, 1 - (1 - of_tasks) / 3, rng)
    free = rng.random(of_tasks.shape) < 0.1
    floor = tried(world, free.astype(float), rng)
    # Where the floor succeeds, the policy always does, too.
    eased = tried(world, np.where(free, 1.0, of_tasks), rng)
    held: dict[str, list[bool]] = {"false_positive": [], "difference": [], "above": [], "eased": []}
    played = map(play, (first, second, better, floor, eased))
    for level, one, other, best, idle, easy in zip(levels.tolist(), *played, strict=True):
        p = difference_p(one, other)
        assert p is not None
        held["false_positive"].append(p < 0.05)
        holds(held["difference"], paired_difference(best, one), 2 / 3 * (1 - level))
        below = success_rate(idle)
        holds(held["above"], above_floor(success_rate(one), below), (level - 0.1) / 0.9)
        holds(held["eased"], above_floor(success_rate(easy), below), level)
    return {name: fmean(each) for name, each in held.items()}


def of_unequal(worlds: tuple[World, World], draws: int, seed: int) -> dict[str, float]:
    """False alarms of the test between the same policy and itself, that tried tasks in unequal numbers."""
    rng = np.random.default_rng([seed, 3, *str(worlds).encode()])
    levels = rng.uniform(*BANDS[worlds[0].band], draws)
    of_tasks = chances(worlds[0], levels, rng)
    played = zip(*(play(tried(world, of_tasks, rng)) for world in worlds), strict=True)
    ps = [difference_p(first, second, draws=500) for first, second in played]
    return {"unequal": fmean(p is not None and p < 0.05 for p in ps)}


def holds(held: list[bool], found: Interval | None, right: float) -> None:
    """Note whether an interval holds the truth; one without bounds, where all is floor, is none."""
    if found is not None and found.low is not None and found.high is not None:
        held.append(found.low <= right <= found.high)


def of_many(world: World, draws: int, seed: int) -> dict[str, float]:
    """Of several policies that are all alike: how often any is called another than the first."""
    rng = np.random.default_rng([seed, 2, *str(world).encode()])
    levels = rng.uniform(*BANDS[world.band], draws)
    of_tasks = chances(world, levels, rng)
    policies = [play(tried(world, of_tasks, rng)) for _ in range(TOGETHER + 1)]
    alone, together = [], []
    for first, *others in zip(*policies, strict=True):
        ps = [difference_p(other, first) for other in others]
        alone.append(any(p is not None and p < 0.05 for p in ps))
        together.append(any(p is not None and p < 0.05 for p in holm(ps)))
    return {"unadjusted": fmean(alone), "holm": fmean(together)}


def goldens() -> float:
    """The largest gap of pass^k and pass@k to closed forms, over the binomial's every outcome."""
    worst = 0.0
    for chance, n in product((0.02, 0.3, 0.5, 0.9), range(1, 9)):
        weights = [math.comb(n, c) * chance**c * (1 - chance) ** (n - c) for c in range(n + 1)]
        for k in range(1, n + 1):
            for of, closed in ((pass_hat, chance**k), (pass_at, 1 - (1 - chance) ** k)):
                values = [of({"t": [i < c for i in range(n)]}, k).value or 0 for c in range(n + 1)]
                mean = math.fsum(w * v for w, v in zip(weights, values, strict=True))
                worst = max(worst, abs(mean - closed))
    return worst


def ranked(found: Found, which: Callable[[str], bool]) -> list[tuple[float, str, World]]:
    """Every figure of this kind, from the lowest to the highest."""
    return sorted((v, name, world) for world, by in found for name, v in by.items() if which(name))


def outside(found: Found) -> list[list[object]]:
    """Of success: `[law, level, conditions, below 0.93, above 0.97]`, where there are any."""
    counted: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for world, by in found:
        count = counted[f"{world.kinds} {world.alike:g}", world.band]
        for place, counts in enumerate((True, by["success"] < 0.93, by["success"] > 0.97)):
            count[place] += counts
    return [[*which, *count] for which, count in sorted(counted.items()) if any(count[1:])]


def _asked(job: tuple[Callable[..., dict[str, float]], Any, int, int]) -> dict[str, float]:
    ask, *how = job
    return ask(*how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--draws", type=int, default=20_000, help="evaluations of each condition")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true", help="only what is held out")
    args = parser.parse_args()
    chosen, others = [] if args.held_out else chosen_on(), held_out()
    of_pairs = [w for w in chosen if (w.alike, w.kinds) in PAIRED]
    of_families = [w for w in of_pairs if w.tasks != 50 and w.trials in (1, 4)]

    unequal = [
        (World(tasks, n, band, 0.3, "beta"), World(tasks, m, band, 0.3, "beta"))
        for tasks, n, m in UNEQUAL
        for band in BANDS
        if not args.held_out
    ]

    def all_of(ask: Callable[..., dict[str, float]], worlds: Sequence[Any], draws: int) -> Found:
        jobs = [(ask, world, draws, args.seed) for world in worlds]
        return list(zip(worlds, pool.map(_asked, jobs, chunksize=2), strict=True))

    with Pool(os.cpu_count()) as pool:
        success = all_of(of_success, chosen, args.draws)
        unseen = all_of(of_success, others, args.draws // 2)
        pairs = all_of(of_pair, of_pairs, args.draws // 10)
        families = all_of(of_many, of_families, args.draws // 10)
        uneven = all_of(of_unequal, unequal, args.draws // 10)
    result: dict[str, object] = {
        "conditions": len(chosen),
        "held_out_conditions": len(others),
        "draws": args.draws,
    }
    kinds: dict[str, tuple[Found, Callable[[str], bool]]] = {
        "coverage": (success, lambda name: name == "success"),
        "held_out_coverage": (unseen, lambda name: name == "success"),
        "pass_hat_coverage": (success, lambda name: name.startswith("pass^")),
        "held_out_pass_hat_coverage": (unseen, lambda name: name.startswith("pass^")),
        "few_coverage": (unseen, lambda name: name == "few"),
        "difference_coverage": (pairs, lambda name: name == "difference"),
        "above_floor_coverage": (pairs, lambda name: name in ("above", "eased")),
    }
    for name, (found, which) in kinds.items():
        if not (figures := ranked(found, which)):
            continue
        result[f"{name}_min"], result[f"{name}_max"] = figures[0][0], figures[-1][0]
        result[f"{name}_mean"] = fmean(value for value, _, _ in figures)
        result[f"{name}_within"] = fmean(0.93 <= value <= 0.97 for value, _, _ in figures)
        ends = [*figures[:3], *figures[-3:]]
        result[f"{name}_ends"] = [[round(v, 4), what, *world] for v, what, world in ends]
    result["held_out_outside"] = outside(unseen)
    alarms = {
        "false_positive": (pairs, "false_positive"),
        "unequal_false_positive": (uneven, "unequal"),
        "holm_false_positive": (families, "holm"),
        "unadjusted_false_positive": (families, "unadjusted"),
    }
    for name, (found, which_alarm) in alarms.items():
        if not (figures := ranked(found, partial(str.__eq__, which_alarm))):
            continue
        result[name] = figures[-1][0]
        result[f"{name}_mean"] = fmean(value for value, _, _ in figures)
    result["golden_gap"] = goldens()
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<28} {value}", file=sys.stdout)


if __name__ == "__main__":
    main()
