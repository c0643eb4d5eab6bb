"""What became of tasks, forgetting slowly, from the episodes alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import msgspec

from muarl.curriculum.failures import failure_of
from muarl.record import Episode
from muarl.spec import TaskSpec

Unit = Hashable
"""What is counted together: a task, or a kind of task."""


class _Counts(msgspec.Struct):
    """What was seen of a unit, as it stood at an iteration."""

    iteration: int
    solved: float = 0.0
    failed: float = 0.0
    classes: dict[str, float] = {}


class Estimate(NamedTuple):
    """What is known of a unit.

    Attributes:
        solved: Rewards earned, those longer ago counting less.
        failed: Rewards missed, likewise.
        classes: Failures by class, likewise.
    """

    solved: float
    failed: float
    classes: dict[str, float]


class Result(NamedTuple):
    """What a curriculum needs to know of an episode.

    Attributes:
        iteration: That played it.
        task_id: Its task.
        reward: None for a fault.
        failure: How it failed; None if it did not.
    """

    iteration: int
    task_id: str
    reward: float | None
    failure: str | None


class Seen:
    """Counts that an iteration leaves a share of, `memory`.

    The same episodes give the same counts to the last bit, in whatever order they come within an
    iteration: so a resumed run, which reads them from its journal, draws the same tasks.
    """

    def __init__(self, tasks: Iterable[TaskSpec], unit: Callable[[TaskSpec], Unit], memory: float):
        self._tasks = {task.id: task for task in tasks}
        self._unit = unit
        self._memory = memory
        self._counts: dict[Unit, _Counts] = {}

    def result(self, episode: Episode) -> Result:
        """What is kept of an episode, so that a long journal need not be in memory."""
        key = episode.key
        task = self._tasks.get(key.task_id)
        failure = None if task is None else failure_of(episode, task)
        return Result(key.iteration, key.task_id, episode.reward, failure)

    def note(self, iteration: int, results: Iterable[Result]) -> None:
        """Take in an iteration's results; iterations come in order, faults tell nothing (law L2)."""
        rewards: defaultdict[Unit, list[float]] = defaultdict(list)
        classes: defaultdict[Unit, Counter[str]] = defaultdict(Counter)
        for result in results:
            task = self._tasks.get(result.task_id)
            if task is None or result.reward is None:
                continue
            unit = self._unit(task)
            rewards[unit].append(result.reward)
            if result.failure is not None:
                classes[unit][result.failure] += 1
        for unit, earned in rewards.items():
            old = self._at(unit, iteration)
            solved = math.fsum(earned)
            found = dict(old.classes)
            for name, count in classes[unit].items():
                found[name] = found.get(name, 0.0) + count
            self._counts[unit] = _Counts(
                iteration, old.solved + solved, old.failed + len(earned) - solved, found
            )

    def of(self, task: TaskSpec, iteration: int) -> Estimate | None:
        """What is known of a task's unit at an iteration; None if it was never seen."""
        unit = self._unit(task)
        return self._at(unit, iteration) if unit in self._counts else None

    def _at(self, unit: Unit, iteration: int) -> Estimate:
        counts = self._counts.get(unit)
        if counts is None:
            return Estimate(0.0, 0.0, {})
        left = self._memory ** (iteration - counts.iteration)
        return Estimate(
            counts.solved * left,
            counts.failed * left,
            {name: count * left for name, count in counts.classes.items()},
        )


def kind_of(task: TaskSpec) -> Unit:
    """Personas, and the tools of the gold calls in order: tasks that are alike but for their data."""
    return (tuple(task.personas), tuple((call.by, call.tool) for call in task.gold))
