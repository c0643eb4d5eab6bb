"""The rollouts of one iteration: a round, and further ones for groups that teach nothing."""

from __future__ import annotations

import logging
import random
from typing import Any, NamedTuple

from muarl.curriculum import Curriculum
from muarl.policy import Policy
from muarl.record import TRAIN
from muarl.scheduler import Group
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, load_of
from muarl.scheduler.rounds import bounds, run_round
from muarl.spec import TaskSpec
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import teaches

_log = logging.getLogger(__name__)


class RolledOut(NamedTuple):
    """What an iteration's rollouts gave.

    Attributes:
        groups: All of them.
        teaching: Those to learn from.
        rounds: Rounds of rollouts it took.
        missing: Groups that were wanted and are not there.
    """

    groups: list[Group]
    teaching: list[Group]
    rounds: int
    missing: int

    def metrics(self) -> dict[str, Any]:
        """For the run's log."""
        return {"rollout_rounds": self.rounds, "groups_missing": self.missing}


async def roll_out(
    at: RunAtWork,
    iteration: int,
    policy: Policy,
    rng: random.Random,
    curriculum: Curriculum | None = None,
) -> RolledOut:
    """Run an iteration's dialogues.

    With `dynamic_sampling`, tasks whose episodes all earned the same are replaced by other tasks of
    the split, none twice, until there are as many groups as asked for that differ, no task is left,
    or as many rounds were made as may be (DAPO, arXiv 2503.14476, equation 11, but bounded).

    Args:
        at: The run.
        iteration: Number of the iteration, from 0.
        policy: What is sampled from.
        rng: Draws the tasks.
        curriculum: Draws them instead, by what became of them before.
    """
    spec = at.run.grpo
    assert spec is not None
    wanted = spec.tasks_per_iteration
    pool = at.domain.tasks(spec.split)
    if spec.dynamic_sampling is None:
        tasks = (
            rng.sample(pool, wanted) if curriculum is None else curriculum.order(iteration)[:wanted]
        )
        once = await _round(at, iteration, policy, tasks)
        return RolledOut(once, once, 1, 0)
    order = rng.sample(pool, len(pool)) if curriculum is None else curriculum.order(iteration)
    groups: list[Group] = []
    teaching: list[Group] = []
    rounds = 0
    while order and len(teaching) < wanted and rounds < spec.dynamic_sampling.max_rounds:
        count = wanted - len(teaching)
        tasks, order = order[:count], order[count:]
        found = await _round(at, iteration, policy, tasks)
        groups += found
        teaching += [group for group in found if teaches(group, spec)]
        rounds += 1
    missing = wanted - len(teaching)
    if missing:
        why = "no task is left" if not order else "dynamic_sampling.max_rounds"
        _log.warning(
            "iteration %d learns from %d groups of %d wanted: in the others all earned the same, and "
            "after %d rounds there is no further one (%s)",
            iteration,
            len(teaching),
            wanted,
            rounds,
            why,
        )
    return RolledOut(groups, teaching, rounds, missing)


async def _round(
    at: RunAtWork, iteration: int, policy: Policy, tasks: list[TaskSpec]
) -> list[Group]:
    run = at.run
    runner = DialogueRunner(
        domain=at.domain,
        tasks=tasks,
        renderer=at.renderer,
        limits=run.rollout,
        user=run.user,
        policy_for=lambda _task, _key: policy,
        observer=at.observation,
        load=load_of(policy),
        perturb=run.rollout.perturb,
    )
    keys = episode_keys(
        tasks,
        run_seed=run.seed,
        phase=TRAIN,
        iteration=iteration,
        group_size=run.rollout.group_size,
    )
    return await run_round(
        keys,
        runner,
        limits=bounds(run.rollout),
        journal=at.journal,
        done=at.done,
        stop=at.stop,
        fuse=at.fuse,
        observer=at.observation,
    )
