"""Evaluations whose truth is known: how likely success is on each task, and how often each is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muarl.evaluate.pass_k import Trials

Draws = npt.NDArray[np.float64]

BANDS = {
    "near 0": (0.02, 0.10),
    "low": (0.1, 0.3),
    "middle": (0.3, 0.7),
    "high": (0.7, 0.9),
    "near 1": (0.90, 0.98),
}

UNEVEN = 0
"""Trials of a task, where each task has a number of its own, 1 to 8, as when faults took some."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


class World(NamedTuple):
    """One condition.

    Attributes:
        tasks: How many.
        trials: Of each; see `UNEVEN`.
        band: Where the level lies, a name of `BANDS`.
        alike: How alike trials of a task end; of "bell" the deviation of a task's log odds.
        kinds: "beta": of every difficulty. "two": the hard and the easy. "settled": a share `alike` of the
            tasks always ends the same way, the rest by chance. "bell": log odds are normal.
    """

    tasks: int
    trials: int
    band: str
    alike: float
    kinds: str


def chosen_on() -> list[World]:
    """Those on which the one free number of the intervals was chosen."""
    every = product((30, 50, 115), (1, 2, 4, 8), BANDS, (0.0, 0.1, 0.3, 0.6), ("beta", "two"))
    # One trial a task, or independent ones: how tasks differ makes no difference.
    return [
        World(m, t, b, a, k)
        for m, t, b, a, k in every
        if (t > 1 or a == 0) and (a > 0 or k == "beta")
    ]


def held_out() -> list[World]:
    """Others: other numbers of tasks and trials, also uneven ones, other laws of difficulty."""
    laws = [("beta", 0.05), ("beta", 0.2), ("beta", 0.45), ("two", 0.2), ("settled", 0.2)]
    laws += [("settled", 0.4), ("bell", 0.7), ("bell", 1.5)]
    every = product((25, 40, 75, 200), (3, 6, UNEVEN), BANDS, laws)
    return [World(m, t, b, alike, kinds) for m, t, b, (kinds, alike) in every]


def chances(world: World, levels: Draws, rng: np.random.Generator) -> Draws:
    """[evaluation, task] the chance of success on each; in the mean over all tasks `truth`."""
    level = np.repeat(levels[:, None], world.tasks, axis=1)
    if world.alike == 0:
        return level
    if world.kinds == "beta":
        size = 1 / world.alike - 1
        return rng.beta(level * size, (1 - level) * size)
    if world.kinds == "settled":
        always = (rng.random(level.shape) < level).astype(float)
        return np.where(rng.random(level.shape) < world.alike, always, level)
    if world.kinds == "bell":
        return _chance(level, world.alike * rng.standard_normal(level.shape))
    apart = math.sqrt(world.alike)
    is_easy = rng.random(level.shape) < level
    return np.where(is_easy, level + (1 - level) * apart, level * (1 - apart))


def truth(world: World, levels: Draws) -> Draws:
    """The mean of a task's chance: what success estimates."""
    if world.kinds != "bell":
        return levels
    at_nodes = _chance(levels[:, None], world.alike * _NODES[None, :])
    return np.asarray((at_nodes * _WEIGHTS).sum(axis=1) / _WEIGHTS.sum())


def power_mean(world: World, level: Draws, k: int) -> Draws:
    """The mean of the k-th power of a task's chance: what pass^k estimates."""
    if world.alike == 0:
        return level**k
    if world.kinds == "beta":
        size = 1 / world.alike - 1
        return np.prod([(level * size + j) / (size + j) for j in range(k)], axis=0)
    if world.kinds == "settled":
        return np.asarray(world.alike * level + (1 - world.alike) * level**k)
    if world.kinds == "bell":
        at_nodes = _chance(level[:, None], world.alike * _NODES[None, :]) ** k
        return np.asarray((at_nodes * _WEIGHTS).sum(axis=1) / _WEIGHTS.sum())
    apart = math.sqrt(world.alike)
    hard, easy = level * (1 - apart), level + (1 - level) * apart
    return level * easy**k + (1 - level) * hard**k


class Sums(NamedTuple):
    """[evaluation, task] successes, of so many trials each."""

    successes: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


def tried(world: World, chance: Draws, rng: np.random.Generator) -> Sums:
    """Try each task."""
    if world.trials == UNEVEN:
        sizes = rng.integers(1, 9, chance.shape)
    else:
        sizes = np.full(chance.shape, world.trials, dtype=np.int64)
    return Sums(rng.binomial(sizes, chance), sizes)


def play(sums: Sums) -> Iterator[Trials]:
    """The same, as `muarl eval` has them."""
    names = [str(task) for task in range(sums.successes.shape[1])]
    for counts, sizes in zip(sums.successes.tolist(), sums.sizes.tolist(), strict=True):
        yield {
            name: [i < c for i in range(n)] for name, c, n in zip(names, counts, sizes, strict=True)
        }


def _chance(level: Draws, shift: Draws) -> Draws:
    odds = np.log(level / (1 - level))
    return np.asarray(1 / (1 + np.exp(-(odds + shift))))
