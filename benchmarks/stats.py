"""Do the intervals of `muarl eval` hold as often as they say, and its test no more often than it says?

    python benchmarks/stats.py --json

Needs no model. Simulates evaluations whose truth is known, and asks the very functions that `muarl eval`
asks. One condition is a design and a world:

    tasks      30, 50, 115 (50 and 115 are those of tau-bench), each tried 1, 2, 4 or 8 times
    level      success of a dialogue: near 0, low, middle, high, near 1 (bands, see below)
    alike      intra-task correlation 0, 0.1, 0.3, 0.6 of the trials of a task
    kinds      tasks of every difficulty (beta), or of two kinds only, the hard and the easy

In every simulated evaluation the level is drawn evenly from its band. Successes are whole numbers, so at one
exact level the coverage of any interval jumps up and down with it by some hundredths (Brown, Cai and
DasGupta, 2001, Statistical Science 16, 101-133); what is told is the mean over a band that is narrower than
any interval of these designs. Near 0 is 0.02 to 0.10: 30 tasks then show 0.6 to 3 successes at one trial
each. Nothing is left out of `coverage_min` and `coverage_max`. pass^k and paired differences stand beside
them; those of pass^k leave out worlds in which it is below 0.02, where 30 tasks see none at all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from multiprocessing import Pool
from statistics import NormalDist, fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muarl.evaluate.comparison import sign_flip_p
from muarl.evaluate.paired import differences, paired_difference
from muarl.evaluate.pass_k import Trials, pass_at, pass_hat
from muarl.evaluate.statistics import Interval, success_rate

Draws = npt.NDArray[np.float64]

TASKS, TRIALS = (30, 50, 115), (1, 2, 4, 8)
BANDS = {
    "near 0": (0.02, 0.10),
    "low": (0.1, 0.3),
    "middle": (0.3, 0.7),
    "high": (0.7, 0.9),
    "near 1": (0.90, 0.98),
}
ALIKE = (0.0, 0.1, 0.3, 0.6)
TOLD = 0.02
"""Of pass^k: below it 30 tasks see mostly none."""
CHECKED = 25
"""Evaluations of each condition on which what is computed at once is held against `muarl.evaluate`."""
PAIRED = ((0.0, "beta"), (0.3, "two"))
"""Correlations and kinds of tasks at which pairs are compared: the test is exact in every world."""


class World(NamedTuple):
    """One condition; see above."""

    tasks: int
    trials: int
    band: str
    alike: float
    kinds: str


def worlds() -> list[World]:
    every = product(TASKS, TRIALS, BANDS, ALIKE, ("beta", "two"))
    # One trial a task, or independent ones: how tasks differ makes no difference.
    return [
        World(m, t, b, a, k)
        for m, t, b, a, k in every
        if (t > 1 or a == 0) and (a > 0 or k == "beta")
    ]


def chances(world: World, levels: Draws, rng: np.random.Generator) -> Draws:
    """[evaluation, task] the chance of success on each; in the mean over all tasks `levels`."""
    level = np.repeat(levels[:, None], world.tasks, axis=1)
    if world.alike == 0:
        return level
    if world.kinds == "beta":
        size = 1 / world.alike - 1
        return rng.beta(level * size, (1 - level) * size)
    apart = math.sqrt(world.alike)
    is_easy = rng.random(level.shape) < level
    return np.where(is_easy, level + (1 - level) * apart, level * (1 - apart))


def power_mean(world: World, level: Draws, k: int) -> Draws:
    """The mean of the k-th power of a task's chance: what pass^k estimates."""
    if world.alike == 0:
        return level**k
    if world.kinds == "beta":
        size = 1 / world.alike - 1
        return np.prod([(level * size + j) / (size + j) for j in range(k)], axis=0)
    apart = math.sqrt(world.alike)
    hard, easy = level * (1 - apart), level + (1 - level) * apart
    return level * easy**k + (1 - level) * hard**k


class Sums(NamedTuple):
    """[evaluation, task] successes, each of so many trials."""

    trials: int
    successes: npt.NDArray[np.int64]


def play(sums: Sums) -> Iterator[Trials]:
    """The same, as `muarl eval` has them."""
    tries = [[i < c for i in range(sums.trials)] for c in range(sums.trials + 1)]
    names = [str(task) for task in range(sums.successes.shape[1])]
    for counts in sums.successes.tolist():
        yield dict(zip(names, map(tries.__getitem__, counts), strict=True))


def intervals(values: Draws) -> tuple[Draws, Draws]:
    """`mean_share` of many evaluations at once: [evaluation, task] one value for each task.

    Only so that ten thousand evaluations of each condition take seconds; `same` holds it against
    `mean_share` itself.
    """
    tasks = values.shape[1]
    share = values.mean(axis=1)
    variance, spread = share * (1 - share), values.var(axis=1)
    alike = np.divide(spread, variance, out=np.ones_like(share), where=variance > 1e-9)
    known = np.minimum(_effective(values), _effective(1 - values))
    weight = known**2 / (known**2 + 1.6**2)
    trials = np.where(spread > 1e-9 / tasks, tasks / (weight * alike + 1 - weight), tasks)
    z = NormalDist().inv_cdf(0.975)
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * np.sqrt(variance / trials + z * z / (4 * trials * trials))
    return np.minimum(centre - half, share), np.maximum(centre + half, share)


def _effective(values: Draws) -> Draws:
    squares = (values**2).sum(axis=1)
    total = values.sum(axis=1) ** 2
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
    sums = rng.binomial(world.trials, chances(world, levels, rng))
    few = Sums(world.trials, sums[:CHECKED])
    low, high = intervals(sums / world.trials)
    same((low, high), success_rate, few)
    found = {"success": float(np.mean((low <= levels) & (levels <= high)))}
    for k in (k for k in (2, 4, 8) if k <= world.trials):
        truth = power_mean(world, levels, k)
        if truth.mean() < TOLD:
            continue
        n = world.trials
        of_count = np.array([math.comb(c, k) / math.comb(n, k) for c in range(n + 1)])
        low, high = intervals(of_count[sums])
        same((low, high), partial(pass_hat, k=k), few)
        found[f"pass^{k}"] = float(np.mean((low <= truth) & (truth <= high)))
    return found


def of_pair(world: World, draws: int, seed: int) -> dict[str, float]:
    """Of two policies on the same tasks: false alarms of the test, and coverage of the difference."""
    rng = np.random.default_rng([seed, 1, *str(world).encode()])
    levels = rng.uniform(*BANDS[world.band], draws)
    of_tasks = chances(world, levels, rng)
    first, second = (Sums(world.trials, rng.binomial(world.trials, of_tasks)) for _ in range(2))
    # The better policy fails a third as often on every task.
    better = Sums(world.trials, rng.binomial(world.trials, 1 - (1 - of_tasks) / 3))
    alarms, held = [], []
    for level, one, other, best in zip(
        levels.tolist(), play(first), play(second), play(better), strict=True
    ):
        p = sign_flip_p(differences(one, other))
        assert p is not None
        alarms.append(p < 0.05)
        found, truth = paired_difference(best, one), 2 / 3 * (1 - level)
        assert found.low is not None
        assert found.high is not None
        held.append(found.low <= truth <= found.high)
    return {"false_positive": fmean(alarms), "difference": fmean(held)}


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


def extremes(
    found: Sequence[tuple[World, dict[str, float]]], which: Callable[[str], bool]
) -> Iterator[tuple[float, str, World]]:
    """Every figure of this kind, from the lowest to the highest."""
    return iter(
        sorted((v, name, world) for world, by in found for name, v in by.items() if which(name))
    )


def _success(job: tuple[World, int, int]) -> tuple[World, dict[str, float]]:
    return job[0], of_success(*job)


def _pair(job: tuple[World, int, int]) -> tuple[World, dict[str, float]]:
    return job[0], of_pair(*job)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--draws", type=int, default=20_000, help="evaluations of each condition")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    every = worlds()
    with Pool(os.cpu_count()) as pool:
        success = pool.map(_success, [(w, args.draws, args.seed) for w in every], chunksize=2)
        of_pairs = [w for w in every if (w.alike, w.kinds) in PAIRED]
        pairs = pool.map(_pair, [(w, args.draws // 5, args.seed) for w in of_pairs])
    result: dict[str, object] = {"conditions": len(every), "draws": args.draws}
    kinds: dict[str, tuple[Sequence[tuple[World, dict[str, float]]], Callable[[str], bool]]] = {
        "coverage": (success, lambda name: name == "success"),
        "pass_hat_coverage": (success, lambda name: name.startswith("pass^")),
        "difference_coverage": (pairs, lambda name: name == "difference"),
    }
    for name, (found, which) in kinds.items():
        ranked = list(extremes(found, which))
        result[f"{name}_min"], result[f"{name}_max"] = ranked[0][0], ranked[-1][0]
        result[f"{name}_mean"] = fmean(value for value, _, _ in ranked)
        result[f"{name}_within"] = fmean(0.93 <= value <= 0.97 for value, _, _ in ranked)
        ends = [*ranked[:2], *ranked[-2:]]
        result[f"{name}_ends"] = [[round(v, 4), what, *world] for v, what, world in ends]
    alarms = list(extremes(pairs, lambda name: name == "false_positive"))
    result["false_positive"] = alarms[-1][0]
    result["false_positive_mean"] = fmean(value for value, _, _ in alarms)
    result["golden_gap"] = goldens()
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<28} {value}", file=sys.stdout)


if __name__ == "__main__":
    main()
