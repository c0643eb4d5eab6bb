"""GRPO as a stage of a run: roll out, learn, give the engines the new weights, again."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import anyio.to_thread

from muarl.curriculum import Curriculum
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.model import load_model
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.step import Trainer
from muarl.record import TRAIN, StoredEpisodes
from muarl.seeds import generator
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import round_metrics, token_drift, training_set, update_metrics
from muarl.train.learner import Learned, Learner
from muarl.train.measuring import answers_told, items_done
from muarl.train.rollouts import roll_out
from muarl.train.stage import stage_of
from muarl.train.user_learning import UserLearning
from muarl.train.users_watched import UsersWatched
from muarl.train.weights import Engine


async def iterate(
    at: RunAtWork, engine: Engine, cold_model: Path, user: UserLearning | None = None
) -> None:
    """Take the iterations that the newest checkpoint does not hold yet.

    Args:
        at: The run.
        engine: Samples, and takes new weights.
        cold_model: Folder of the weights that GRPO began with.
        user: Learns beside the policy, if she is trained.
    """
    spec = at.run.grpo
    assert spec is not None
    trainer = Trainer.for_grpo(at.model, spec)
    stage, first = stage_of(at.folder.checkpoint)
    if stage == "grpo":
        load_checkpoint(at.folder.checkpoint, trainer)
    else:
        first = 0
    await engine.sync(first)
    if user is not None:
        await user.begin(first)
    policy = Learner(trainer, load_model(cold_model), spec, at.run.rollout.temperature)
    at.folder.keep_lines(lambda line: line["kind"] != "iteration" or line["iteration"] < first)
    users = UsersWatched(at.domain, at.folder.lines())
    curriculum = _curriculum(at, first)
    at.progress.phase("GRPO", spec.iterations)
    for iteration in range(first, spec.iterations):
        await _iteration(at, iteration, policy, engine, users, curriculum, user)


def _curriculum(at: RunAtWork, first: int) -> Curriculum | None:
    """What draws the tasks, knowing all iterations before the first that is to be made."""
    spec = at.run.grpo
    assert spec is not None
    if spec.curriculum is None:
        return None
    found = Curriculum(
        spec.curriculum,
        at.domain.tasks(spec.split),
        wanted=spec.tasks_per_iteration,
        run_seed=at.run.seed,
    )
    if first:
        found.note_stored(StoredEpisodes([at.folder.journal], phases=[TRAIN]), before=first)
    return found


async def _iteration(
    at: RunAtWork,
    iteration: int,
    policy: Learner,
    engine: Engine,
    users: UsersWatched,
    curriculum: Curriculum | None,
    user: UserLearning | None,
) -> None:
    spec = at.run.grpo
    assert spec is not None
    started, before = time.monotonic(), at.observation.counters.snapshot()
    rng = generator(at.run.seed, "iteration", iteration)
    if user is not None:
        await user.before(iteration)
    rolled = await roll_out(at, iteration, engine.policy, rng, curriculum)
    groups = rolled.groups
    rollout_s, observed = time.monotonic() - started, at.since(before)

    done = await items_done(at, rolled.teaching)

    def learn() -> Learned:
        """In a worker thread, as the cold start."""
        penalties = {}
        if spec.kl_coef and spec.kl_in == "reward":
            scored = [e for g in rolled.teaching for e in g.episodes if e.reward is not None]
            _, gaps = policy.gaps([s for e in scored for s in e.samples])
            of_samples = iter(gaps)
            penalties = {
                e.key: spec.kl_coef * math.fsum(next(of_samples) for _ in e.samples) for e in scored
            }
        learns = user is None or user.policy_learns(iteration)
        teaching = rolled.teaching if learns else []
        measured = done or answers_told(at, teaching, policy.trainer.model)
        found = training_set(teaching, spec, penalties=penalties, measured=measured)
        return policy.learn(found, lr=grpo_lr(iteration, spec), rng=rng)

    learned = await anyio.to_thread.run_sync(learn)
    hers = None if user is None else await user.after(iteration, groups)
    sync_gap = await engine.sync(iteration + 1)
    save_checkpoint(
        at.folder.checkpoint, policy.trainer, {"stage": "grpo", "iteration": iteration + 1}
    )
    episodes = [episode for group in groups for episode in group.episodes]
    if curriculum is not None:
        curriculum.note(iteration, episodes)
    metrics: dict[str, Any] = {
        **round_metrics(groups, seed=at.run.seed),
        **update_metrics(learned.updates),
        **rolled.metrics(),
        "dropped": dict(learned.dropped),
        "credit": dict(learned.credit),
        "curriculum": None if curriculum is None else dict(curriculum.metrics(iteration)),
        "kl": learned.divergence,
        "sync_gap": sync_gap,
        "token_drift": token_drift(episodes),
        "users": await users.observe(iteration, groups),
        "policy_version": iteration,
        "lr": grpo_lr(iteration, spec),
        "rollout_s": rollout_s,
        "wall_s": time.monotonic() - started,
        "observed": observed,
    }
    if hers is not None:
        metrics["user_model"] = hers
    metrics["sampled_tokens_per_s"] = metrics.pop("sampled_tokens") / rollout_s
    at.folder.log("iteration", iteration=iteration, **metrics)
    at.progress.advance(iteration + 1, reward=metrics["reward_mean"])
