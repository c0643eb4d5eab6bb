"""GRPO as a stage of a run: roll out, learn, give the engine the new weights, again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread

from muarl.curriculum import Curriculum
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.lora import adapters_off, has_adapters
from muarl.kernel.model import load_model
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.step import GrpoMetrics, Trainer, sample_logprobs
from muarl.record import TRAIN, Sample, StoredEpisodes
from muarl.seeds import generator
from muarl.train.at_work import RunAtWork
from muarl.train.grpo import (
    divergence_from,
    round_metrics,
    split_updates,
    token_drift,
    training_set,
    update_metrics,
)
from muarl.train.measuring import answers_told, items_done
from muarl.train.rollouts import roll_out
from muarl.train.stage import stage_of
from muarl.train.users_watched import UsersWatched
from muarl.train.weights import Engine

_KL_SAMPLES = 32
"""Samples of a round on which the divergence from the cold start is measured when it is not held
down: enough for a curve, cheap enough to have in every round."""


Reference = Callable[[Sequence[Sample]], list[list[float]]]
"""Log-probs of samples, laid out like theirs, under the policy that GRPO began with."""


class Learned(NamedTuple):
    """What became of a round's episodes.

    Attributes:
        updates: What each saw.
        divergence: Mean over sampled tokens from the policy that GRPO began with.
        dropped: Episodes that were left out of the loss, by why.
        credit: What the credit of turns made of the episodes' advantages.
    """

    updates: list[GrpoMetrics]
    divergence: float | None
    dropped: Mapping[str, int]
    credit: Mapping[str, float]


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
    reference = _reference(at, cold_model)
    at.folder.keep_lines(lambda line: line["kind"] != "iteration" or line["iteration"] < first)
    users = UsersWatched(at.domain, at.folder.lines())
    curriculum = _curriculum(at, first)
    at.progress.phase("GRPO", spec.iterations)
    for iteration in range(first, spec.iterations):
        await _iteration(at, iteration, trainer, reference, engine, users, curriculum)


def _reference(at: RunAtWork, cold_model: Path) -> Reference:
    """The policy that GRPO began with: with adapters the model without them, else a second model."""
    temperature = at.run.rollout.temperature
    if not has_adapters(at.model):
        return partial(sample_logprobs, load_model(cold_model), temperature=temperature)

    def without_adapters(samples: Sequence[Sample]) -> list[list[float]]:
        with adapters_off(at.model):
            return sample_logprobs(at.model, samples, temperature=temperature)

    return without_adapters


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
    trainer: Trainer,
    reference: Reference,
    engine: Engine,
    users: UsersWatched,
    curriculum: Curriculum | None,
) -> None:
    spec = at.run.grpo
    assert spec is not None
    started, before = time.monotonic(), at.observation.counters.snapshot()
    rng = generator(at.run.seed, "iteration", iteration)
    rolled = await roll_out(at, iteration, engine.policy, rng, curriculum)
    groups = rolled.groups
    rollout_s, observed = time.monotonic() - started, at.since(before)
    temperature = at.run.rollout.temperature

    def referenced(samples: Sequence[Sample]) -> tuple[list[list[float]], list[float]]:
        """Log-probs under the reference, and how far each sample is from it."""
        theirs = reference(samples)
        return theirs, divergence_from(samples, theirs, spec)

    done = await items_done(at, rolled.teaching)

    def learn() -> Learned:
        """In a worker thread, as the cold start."""
        penalties = {}
        if spec.kl_coef and spec.kl_in == "reward":
            scored = [e for g in rolled.teaching for e in g.episodes if e.reward is not None]
            _, gaps = referenced([s for e in scored for s in e.samples])
            of_samples = iter(gaps)
            penalties = {
                e.key: spec.kl_coef * math.fsum(next(of_samples) for _ in e.samples) for e in scored
            }
        measured = done or answers_told(at, rolled.teaching, trainer.model)
        found = training_set(rolled.teaching, spec, penalties=penalties, measured=measured)
        in_loss = spec.kl_coef > 0 and spec.kl_in == "loss"
        ours = found.samples if in_loss else found.samples[:_KL_SAMPLES]
        theirs, gaps = referenced(ours)
        tokens = sum(s.num_sampled for s in ours)
        old = None
        if spec.correction is not None:
            old = sample_logprobs(trainer.model, found.samples, temperature=temperature)
        updates = [
            trainer.grpo_update(
                [found.samples[i] for i in part],
                [found.advantages[i] for i in part],
                spec=spec,
                lr=grpo_lr(iteration, spec),
                temperature=temperature,
                reference_logprobs=[theirs[i] for i in part] if in_loss else None,
                old_logprobs=None if old is None else [old[i] for i in part],
            )
            for part in split_updates(len(found.samples), spec.updates_per_iteration, rng)
        ]
        divergence = math.fsum(gaps) / tokens if tokens else None
        return Learned(updates, divergence, found.dropped, found.credit_metrics())

    learned = await anyio.to_thread.run_sync(learn)
    sync_gap = await engine.sync(iteration + 1)
    save_checkpoint(at.folder.checkpoint, trainer, {"stage": "grpo", "iteration": iteration + 1})
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
    metrics["sampled_tokens_per_s"] = metrics.pop("sampled_tokens") / rollout_s
    at.folder.log("iteration", iteration=iteration, **metrics)
    at.progress.advance(iteration + 1, reward=metrics["reward_mean"])
