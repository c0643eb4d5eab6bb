"""What GRPO samples: which tasks in which iteration, and the dialogues of each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from muarl.policy import Policy
from muarl.record import TRAIN, EpisodeKey
from muarl.scheduler import Groups
from muarl.scheduler.admission import GroupSource
from muarl.scheduler.dialogues import DialogueRunner, load_of
from muarl.scheduler.rounds import bounds, open_groups
from muarl.seeds import generator
from muarl.spec import RunSpec, TaskSpec
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import teaches
from muarl.train.lineup import Place, Plan


def tasks_of(
    run: RunSpec, pool: Sequence[TaskSpec], iteration: int
) -> tuple[list[TaskSpec], random.Random]:
    """The tasks of an iteration, in order, and the generator that goes on drawing for it.

    With `dynamic_sampling` those beyond the first `tasks_per_iteration` replace groups in which all
    earned the same, none twice (DAPO, arXiv 2503.14476, equation 11, but bounded).
    """
    spec = run.grpo
    assert spec is not None
    rng = generator(run.seed, "iteration", iteration)
    count = spec.tasks_per_iteration if spec.dynamic_sampling is None else len(pool)
    return rng.sample(list(pool), count), rng


def plan_of(run: RunSpec, pool: Sequence[TaskSpec]) -> Plan:
    """What a run samples, from first to last."""
    spec = run.grpo
    assert spec is not None
    size, replacing = run.rollout.group_size, spec.dynamic_sampling

    def keys(place: Place) -> list[EpisodeKey]:
        first = place.take * size
        return [
            EpisodeKey(run.seed, TRAIN, place.cohort, place.task_id, sample)
            for sample in range(first, first + size)
        ]

    return Plan(
        cohorts=spec.iterations,
        wanted=spec.tasks_per_iteration,
        tasks=lambda cohort: [task.id for task in tasks_of(run, pool, cohort)[0]],
        keys=keys,
        teaches=lambda group: replacing is None or teaches(group, spec),
        max_rounds=1 if replacing is None else replacing.max_rounds,
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
    )
