"""GRPO as a stage of a run: roll out, learn, give the engine the new weights, again."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import anyio.to_thread
from transformers import PreTrainedModel

from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.model import load_model
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.step import GrpoMetrics, Trainer, sample_logprobs
from muarl.record import TRAIN
from muarl.scheduler import Group
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, load_of
from muarl.scheduler.rounds import bounds, run_round
from muarl.seeds import generator
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import (
    k3,
    round_metrics,
    split_updates,
    token_drift,
    training_set,
    update_metrics,
)
from muarl.train.stage import stage_of
from muarl.train.weights import Engine

_KL_SAMPLES = 32
"""Samples of a round on which the divergence from the cold start is measured when it is not held
down: enough for a curve, cheap enough to have in every round."""


async def iterate(at: RunAtWork, engine: Engine, cold_model: Path) -> None:
    """Take the iterations that the newest checkpoint does not hold yet.

    Args:
        at: The run.
        engine: Samples, and takes new weights.
        cold_model: Folder of the weights that GRPO began with.
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
    reference = load_model(cold_model)
    at.folder.keep_lines(lambda line: line["kind"] != "iteration" or line["iteration"] < first)
    at.progress.phase("GRPO", spec.iterations)
    for iteration in range(first, spec.iterations):
        await _iteration(at, iteration, trainer, reference, engine)


async def _iteration(
    at: RunAtWork, iteration: int, trainer: Trainer, reference: PreTrainedModel, engine: Engine
) -> None:
    spec = at.run.grpo
    assert spec is not None
    started, before = time.monotonic(), at.observation.counters.snapshot()
    rng = generator(at.run.seed, "iteration", iteration)
    groups = await _roll_out(at, iteration, engine, rng)
    rollout_s, observed = time.monotonic() - started, at.since(before)
    samples, advantages = training_set(groups, spec)

    def learn() -> tuple[list[GrpoMetrics], float | None]:
        """In a worker thread, as the cold start."""
        temperature = at.run.rollout.temperature
        ours = samples if spec.kl_coef else samples[:_KL_SAMPLES]
        theirs = sample_logprobs(reference, ours, temperature=temperature)
        divergence = k3(ours, theirs)
        logprobs = dict(zip(map(id, ours), theirs, strict=True)) if spec.kl_coef else None
        updates = [
            trainer.grpo_update(
                part,
                values,
                spec=spec,
                lr=grpo_lr(iteration, spec),
                temperature=temperature,
                reference_logprobs=None if logprobs is None else [logprobs[id(s)] for s in part],
            )
            for part, values in split_updates(samples, advantages, spec.updates_per_iteration, rng)
        ]
        return updates, divergence

    updates, divergence = await anyio.to_thread.run_sync(learn)
    sync_gap = await engine.sync(iteration + 1)
    save_checkpoint(at.folder.checkpoint, trainer, {"stage": "grpo", "iteration": iteration + 1})
    episodes = [episode for group in groups for episode in group.episodes]
    metrics: dict[str, Any] = {
        **round_metrics(groups, seed=at.run.seed),
        **update_metrics(updates),
        "kl": divergence,
        "sync_gap": sync_gap,
        "token_drift": token_drift(episodes),
        "policy_version": iteration,
        "lr": grpo_lr(iteration, spec),
        "rollout_s": rollout_s,
        "wall_s": time.monotonic() - started,
        "observed": observed,
    }
    metrics["sampled_tokens_per_s"] = metrics.pop("sampled_tokens") / rollout_s
    at.folder.log("iteration", iteration=iteration, **metrics)
    at.progress.advance(iteration + 1, reward=metrics["reward_mean"])


async def _roll_out(
    at: RunAtWork, iteration: int, engine: Engine, rng: random.Random
) -> list[Group]:
    run, spec = at.run, at.run.grpo
    assert spec is not None
    pool = at.domain.tasks(spec.split)
    tasks = rng.sample(pool, spec.tasks_per_iteration)
    runner = DialogueRunner(
        domain=at.domain,
        tasks=tasks,
        renderer=at.renderer,
        limits=run.rollout,
        user=run.user,
        policy_for=lambda _task, _key: engine.policy,
        observer=at.observation,
        load=load_of(engine.policy),
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
