"""What GRPO samples: which tasks in which iteration, and the dialogues of each."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from muarl.curriculum import Curriculum
from muarl.policy import Policy
from muarl.record import TRAIN, Episode, EpisodeKey
from muarl.scheduler import Groups
from muarl.scheduler.admission import GroupSource
from muarl.scheduler.crew import Crew
from muarl.scheduler.dialogues import DialogueRunner, load_of
from muarl.scheduler.rounds import bounds, open_groups
from muarl.seeds import generator
from muarl.spec import RunSpec, TaskSpec
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import teaches
from muarl.train.plan import BatchRecord, Plan


class Draws:
    """Draws the tasks of one iteration after another.

    With a curriculum they depend on what became of earlier ones: those of iteration c on the batches of
    the updates before c - max_lag. These were all made when its groups may begin, at whatever moment they
    do, so that a run that is taken up draws the same.

    Args:
        run: The run.
        pool: The split's tasks.
        weights: How often each is drawn; None: all alike.
        max_lag: Versions that sampling may be ahead.
    """

    def __init__(
        self,
        run: RunSpec,
        pool: Sequence[TaskSpec],
        max_lag: int,
        weights: Sequence[float] | None = None,
    ) -> None:
        spec = run.grpo
        assert spec is not None
        self._run = run
        self._spec = spec
        self._pool = list(pool)
        self._max_lag = max_lag
        self._weights = weights
        self._learned: dict[int, Sequence[Episode]] = {}
        self._noted = 0
        self._orders: list[list[TaskSpec]] = []
        self.curriculum: Curriculum | None = None
        if spec.curriculum is not None:
            self.curriculum = Curriculum(
                spec.curriculum, pool, wanted=spec.tasks_per_iteration, run_seed=run.seed
            )

    def rng(self, iteration: int) -> random.Random:
        """What an iteration draws with, once its tasks are drawn."""
        return self._by_chance(iteration)[1]

    def tasks(self, iteration: int) -> list[str]:
        """Ids of an iteration's tasks, in order.

        With `dynamic_sampling` those beyond the first `tasks_per_iteration` replace groups in which all
        earned the same, none twice (DAPO, arXiv 2503.14476, equation 11, but bounded).
        """
        if self.curriculum is None:
            return [task.id for task in self._by_chance(iteration)[0]]
        while len(self._orders) <= iteration:
            self._draw(self.curriculum, len(self._orders))
        return [task.id for task in self._orders[iteration][: self._count]]

    @property
    def _count(self) -> int:
        replaces = self._spec.dynamic_sampling is not None
        return len(self._pool) if replaces else self._spec.tasks_per_iteration

    def _by_chance(self, iteration: int) -> tuple[list[TaskSpec], random.Random]:
        rng = generator(self._run.seed, "iteration", iteration)
        if self.curriculum is not None:
            return [], rng
        if self._weights is None:
            return rng.sample(self._pool, self._count), rng
        return weighted_sample(rng, self._pool, self._weights, self._count), rng

    def _draw(self, curriculum: Curriculum, iteration: int) -> None:
        while self._noted < iteration - self._max_lag:
            curriculum.note(self._noted, self._learned.pop(self._noted, []))
            self._noted += 1
        order = curriculum.order(iteration)
        curriculum.begin(iteration, order[: self._spec.tasks_per_iteration])
        self._orders.append(order)

    def learned(self, iteration: int, episodes: Iterable[Episode]) -> None:
        """An update was made from a batch; `episodes` are all that became whole with it."""
        if self.curriculum is not None:
            self._learned[iteration] = list(episodes)

    def recall(
        self, records: Iterable[BatchRecord], done: Mapping[EpisodeKey, Episode], before: int
    ) -> None:
        """Take in what an earlier process learned from, by its records."""
        for record in records:
            if record.iteration < before:
                names = [*record.groups, *record.idle, *record.dropped]
                keys = [key for name in names for key in group_keys(self._run, *name)]
                self.learned(record.iteration, [done[key] for key in keys if key in done])


def weighted_sample(
    rng: random.Random, pool: Sequence[TaskSpec], weights: Sequence[float], count: int
) -> list[TaskSpec]:
    """Draw so many tasks, none twice, the next always by the weights of those that are left.

    Efraimidis and Spirakis, Information Processing Letters 97 (2006): the largest of u^(1/w).
    """
    keys = [math.log(1.0 - rng.random()) / weight for weight in weights]
    order = sorted(range(len(pool)), key=lambda index: keys[index], reverse=True)
    return [pool[index] for index in order[:count]]


def group_keys(run: RunSpec, cohort: int, task_id: str, take: int) -> list[EpisodeKey]:
    """The dialogues of a group; those of each take are other ones."""
    size = run.rollout.group_size
    return [
        EpisodeKey(run.seed, TRAIN, cohort, task_id, sample)
        for sample in range(take * size, (take + 1) * size)
    ]


def plan_of(run: RunSpec, draws: Draws, crew: Crew | None = None) -> Plan:
    """What a run samples, from first to last.

    Args:
        run: The run.
        draws: Its tasks.
        crew: Processes that share out each iteration's groups, in turn.
    """
    spec = run.grpo
    assert spec is not None
    replacing = spec.dynamic_sampling
    return Plan(
        cohorts=spec.iterations,
        wanted=spec.tasks_per_iteration,
        tasks=draws.tasks,
        keys=lambda place: group_keys(run, *place.name),
        teaches=lambda group: replacing is None or teaches(group, spec),
        max_rounds=1 if replacing is None else replacing.max_rounds,
        is_mine=None if crew is None else lambda place: place.number % crew.size == crew.rank,
    )


def rolling_out(
    at: RunAtWork, source: GroupSource, policy: Policy, pool: Sequence[TaskSpec]
) -> AbstractAsyncContextManager[Groups]:
    """Run a source's dialogues while the block is open."""
    run = at.run
    runner = DialogueRunner(
        domain=at.domain,
        tasks=pool,
        renderer=at.renderer,
        limits=run.rollout,
        user=run.user,
        policy_for=lambda _task, _key: policy,
        observer=at.observation,
        load=load_of(policy),
        perturb=run.rollout.perturb,
        user_model=at.user_model,
        loop=at.loop,
    )
    return open_groups(
        source,
        runner,
        limits=bounds(run.rollout),
        journal=at.journal,
        done=at.done,
        stop=at.stop,
        fuse=at.fuse,
        observer=at.observation,
        crew=at.crew,
    )
