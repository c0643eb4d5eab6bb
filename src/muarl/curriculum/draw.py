"""Which tasks an iteration plays: those that waited longest first, then by weight.

No task starves. Let m of an iteration's places go to the tasks that were played longest ago, N be the
tasks of the split. A task x that is not played for k iterations is behind m others in each of them;
whoever is played goes behind x, and nobody comes before it. At most N - 1 were before it, so
k · m <= N - 1: in any ceil(N / m) iterations each task is played at least once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from muarl.curriculum.seen import Seen, kind_of
from muarl.curriculum.weights import failures, half, horizon
from muarl.record import Episode
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.curriculum import CurriculumSpec


class Curriculum:
    """Draws each iteration's tasks by what became of them so far.

    What it knows follows from the run's episodes, so it is stored nowhere else: `note` those of the
    iterations that were made, in order, and it draws on as if it had never stopped (law L9).
    """

    def __init__(
        self, spec: CurriculumSpec, pool: Sequence[TaskSpec], *, wanted: int, run_seed: int
    ) -> None:
        """Begin with nothing known.

        Args:
            spec: What tasks are drawn by.
            pool: The split's tasks.
            wanted: Tasks of an iteration.
            run_seed: All draws follow from it (law L5).
        """
        self._spec = spec
        self._pool = list(pool)
        self._wanted = wanted
        self._run_seed = run_seed
        rank = generator(run_seed, "curriculum").sample(range(len(pool)), len(pool))
        self._rank = {task.id: place for task, place in zip(pool, rank, strict=True)}
        self._last = dict.fromkeys(self._rank, -1)
        kind = spec.half or spec.failures
        unit = kind_of if kind is not None and kind.by == "kind" else attrgetter("id")
        self._seen = Seen(pool, unit, 1.0 if kind is None else kind.memory)

    @property
    def places(self) -> int:
        """Places of an iteration that go to those that waited longest."""
        return max(1, math.ceil(self._spec.kind.waiting * self._wanted))

    @property
    def longest_wait(self) -> int:
        """Iterations in which every task is played at least once."""
        return math.ceil(len(self._pool) / self.places)

    def note(self, iteration: int, episodes: Iterable[Episode]) -> None:
        """Take in what an iteration played, whole; faults count as played, and tell nothing."""
        results = [self._seen.result(episode) for episode in episodes]
        for result in results:
            if result.task_id in self._last:
                self._last[result.task_id] = max(self._last[result.task_id], iteration)
        self._seen.note(iteration, results)

    def begin(self, iteration: int, tasks: Iterable[TaskSpec]) -> None:
        """An iteration's tasks begin to be played: where iterations overlap, before it is noted."""
        for task in tasks:
            self._last[task.id] = iteration

    def order(self, iteration: int) -> list[TaskSpec]:
        """All tasks, those to be played first.

        The first of them are those that waited longest; the others are drawn without replacement by
        weight (Efraimidis and Spirakis 2006: in the order of log(u) / w, u uniform), and tasks of
        weight 0 come last, by how long they waited.
        """
        by_wait = sorted(self._pool, key=self._waited)
        first, rest = by_wait[: self.places], by_wait[self.places :]
        weights = dict(zip(self._rank, self._weights(iteration), strict=True))
        rng = generator(self._run_seed, "curriculum", iteration)
        draws = {task.id: math.log(1.0 - rng.random()) for task in self._pool}
        drawn = [task for task in rest if weights[task.id] > 0]
        drawn.sort(key=lambda task: draws[task.id] / weights[task.id], reverse=True)
        return [*first, *drawn, *(task for task in rest if weights[task.id] <= 0)]

    def metrics(self, iteration: int) -> Mapping[str, Any]:
        """For the run's log, after an iteration: tasks never played, and the longest wait so far."""
        return {
            "never_played": sum(last < 0 for last in self._last.values()),
            "longest_wait": iteration - min(self._last.values()),
            "longest_wait_allowed": self.longest_wait,
        }

    def _waited(self, task: TaskSpec) -> tuple[int, int]:
        return (self._last[task.id], self._rank[task.id])

    def _weights(self, iteration: int) -> list[float]:
        spec = self._spec
        if spec.half is not None:
            return half(self._pool, iteration, self._seen, spec.half)
        if spec.failures is not None:
            return failures(self._pool, iteration, self._seen, spec.failures)
        assert spec.horizon is not None
        return horizon(self._pool, iteration, spec.horizon)
