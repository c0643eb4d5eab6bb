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
from itertools import product
from multiprocessing import Pool
from statistics import fmean
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


def power_mean(world: World, level: float, k: int) -> float:
    """The mean of the k-th power of a task's chance: what pass^k estimates."""
    if world.alike == 0:
        return level**k
    if world.kinds == "beta":
        size = 1 / world.alike - 1
        return math.prod((level * size + j) / (size + j) for j in range(k))
    apart = math.sqrt(world.alike)
    hard, easy = level * (1 - apart), level + (1 - level) * apart
    return float(level * easy**k + (1 - level) * hard**k)


def play(of_tasks: Draws, trials: int, rng: np.random.Generator) -> Iterator[Trials]:
    """The successes of each evaluation."""
    tries = [[i < c for i in range(trials)] for c in range(trials + 1)]
    names = [str(task) for task in range(of_tasks.shape[1])]
    for counts in rng.binomial(trials, of_tasks).tolist():
        yield dict(zip(names, map(tries.__getitem__, counts), strict=True))


def holds(interval: Interval, truth: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= truth <= interval.high


def of_success(world: World, draws: int, seed: int) -> dict[str, float]:
    """How often each interval holds, of one world."""
    rng = np.random.default_rng([seed, *str(world).encode()])
    held: dict[str, list[bool]] = {}
    told: dict[str, list[float]] = {}
    ks = [k for k in (2, 4, 8) if k <= world.trials]
    levels = rng.uniform(*BANDS[world.band], draws)
    evaluations = play(chances(world, levels, rng), world.trials, rng)
    for number, (level, trials) in enumerate(zip(levels.tolist(), evaluations, strict=True)):
        held.setdefault("success", []).append(holds(success_rate(trials), level))
        if number % 4 == 0:
            for k in ks:
                truth = power_mean(world, level, k)
                told.setdefault(f"pass^{k}", []).append(truth)
                held.setdefault(f"pass^{k}", []).append(holds(pass_hat(trials, k), truth))
    return {
        name: fmean(each)
        for name, each in held.items()
        if name not in told or fmean(told[name]) >= TOLD
    }


def of_pair(world: World, draws: int, seed: int) -> dict[str, float]:
    """Of two policies on the same tasks: false alarms of the test, and coverage of the difference."""
    rng = np.random.default_rng([seed, 1, *str(world).encode()])
    levels = rng.uniform(*BANDS[world.band], draws)
    of_tasks = chances(world, levels, rng)
    first, second = (list(play(of_tasks, world.trials, rng)) for _ in range(2))
    # The better policy fails a third as often on every task.
    better = play(1 - (1 - of_tasks) / 3, world.trials, rng)
    alarms, held = [], []
    for level, one, other, best in zip(levels.tolist(), first, second, better, strict=True):
        p = sign_flip_p(differences(one, other))
        assert p is not None
        alarms.append(p < 0.05)
        held.append(holds(paired_difference(best, one), 2 / 3 * (1 - level)))
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
    parser.add_argument("--draws", type=int, default=10_000, help="evaluations of each condition")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    every = worlds()
    with Pool(os.cpu_count()) as pool:
        success = pool.map(_success, [(w, args.draws, args.seed) for w in every], chunksize=2)
        pairs = pool.map(_pair, [(w, args.draws, args.seed) for w in every], chunksize=2)
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
