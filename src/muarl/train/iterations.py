"""GRPO as a stage of a run: sample and learn, each as far ahead of the other as the run file lets it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from muarl.errors import RecordError
from muarl.kernel.checkpoint import Counters, load_checkpoint, save_checkpoint
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.step import Trainer
from muarl.spec import TaskSpec
from muarl.train.at_work import RunAtWork
from muarl.train.began_with import (
    COUNTER,
    LEARNED,
    began_with,
    learned_last,
    refuse_another_beginning,
    refuse_another_run,
)
from muarl.train.grpo import round_metrics, token_drift
from muarl.train.learned_from import learned_line
from muarl.train.learning import Learned, Learner, figures_of, skipped_last
from muarl.train.lineup import Lineup
from muarl.train.measuring import answers_told, items_done
from muarl.train.pipeline import Pipeline
from muarl.train.plan import Batch, pace_of
from muarl.train.reference import reference_of
from muarl.train.rollouts import Draws, plan_of, rolling_out
from muarl.train.stage import stage_of
from muarl.train.user_learning import UserLearning
from muarl.train.users_watched import UsersWatched
from muarl.train.validation import Validation
from muarl.train.weights import Engine

_log = logging.getLogger(__name__)


async def iterate(
    at: RunAtWork, engine: Engine, cold_model: Path, user: UserLearning | None = None
) -> None:
    """Take the iterations that the newest checkpoint does not hold yet.

    Afterwards the model and the engine have the last weights, or those that did best in validation.

    Args:
        at: The run.
        engine: Samples, and takes new weights.
        cold_model: Folder of the weights that GRPO began with.
        user: Learns beside the policy, if she is trained.

    Raises:
        Interrupted: A stop was requested; what was under way has ended and is on disk.
        NonFiniteLoss: Too many updates in a row had to be skipped.
        RecordError: What the run has learned from so far is not known, or the checkpoint is another's.
    """
    spec = at.run.grpo
    assert spec is not None
    trainer = Trainer.for_grpo(at.model, spec, at.run.kernel, at.ranks)
    at.progress.note(str(trainer.found))
    stage, first = stage_of(at.folder.checkpoint)
    beginning = await anyio.to_thread.run_sync(began_with, cold_model)
    if stage == "grpo":
        counters = load_checkpoint(at.folder.checkpoint, trainer)
        refuse_another_beginning(cold_model, beginning, counters)
        batches = at.folder.batches
        refuse_another_run(at.folder.checkpoint, batches.path, batches.read(), counters)
    else:
        first = 0
    await engine.sync(first)
    if user is not None:
        await user.begin(first)
    at.folder.keep_lines(lambda line: _is_before(line, first))
    validation = Validation(at, engine)
    at.progress.phase("GRPO", spec.iterations)
    if await validation.goes_on(first):
        await _Iterations(at, engine, trainer, validation, cold_model, beginning, first, user).run()
    await validation.take_best()


def _is_before(line: Mapping[str, Any], first: int) -> bool:
    """Whether a line of the metrics tells of what a run that is taken up at `first` has done."""
    if line["kind"] == "validation":
        return bool(line["iteration"] <= first)
    return bool(line["kind"] != "iteration" or line["iteration"] < first)


class _Iterations:
    """The iterations of a run that is under way."""

    def __init__(
        self,
        at: RunAtWork,
        engine: Engine,
        trainer: Trainer,
        validation: Validation,
        cold_model: Path,
        beginning: str,
        first: int,
        user: UserLearning | None,
    ) -> None:
        assert at.run.grpo is not None
        self._at = at
        self._spec = at.run.grpo
        self._engine = engine
        self._trainer = trainer
        self._validation = validation
        self._beginning = beginning
        self._user = user
        self._pace = pace_of(self._spec)
        self._pool: Sequence[TaskSpec] = at.domain.tasks(self._spec.split)
        records = at.folder.batches.read()
        if self._pace.in_flight and {r.iteration for r in records} < set(range(first)):
            raise RecordError(
                f"{at.folder.batches.path} does not say what every one of the {first} iterations "
                "learned from, so nobody knows what is left. Restore the file from a copy, or use "
                "--overwrite to start anew"
            )
        weights = at.domain.weights(self._pool)
        self._draws = Draws(at.run, self._pool, self._pace.max_lag, weights)
        self._draws.recall(records, at.done, first)
        lineup = Lineup(
            plan_of(at.run, self._draws, at.crew),
            self._pace,
            version=first,
            records=records,
            done=at.done,
        )
        self._pipeline = Pipeline(lineup, stop=at.stop, fuse=at.fuse, crew=at.crew)
        self._users = UsersWatched(at.domain, at.folder.lines())
        self._learner = Learner(
            trainer,
            reference_of(at.model, cold_model),
            self._spec,
            temperature=at.run.rollout.temperature,
            skipped_in_a_row=skipped_last(at.folder.lines()),
        )
        self._began()

    def _began(self) -> None:
        """An iteration begins, and with it what is measured."""
        self._started = time.monotonic()
        self._before = self._at.observation.counters.snapshot()
        self._busy_before = self._pipeline.busy.seconds

    async def run(self) -> None:
        """Take them all."""
        at, policy = self._at, self._engine.policy
        await self._pipeline.run(
            lambda source: rolling_out(at, source, policy, self._pool), self._iteration
        )

    async def _iteration(self, batch: Batch) -> bool:
        """Learn from a batch; whether there is a further one."""
        at, number = self._at, batch.iteration
        waited_s, observed = time.monotonic() - self._started, at.since(self._before)
        at.folder.batches.append(batch.record)
        rng = self._draws.rng(number)
        times = _Times(self._pipeline)
        items = await items_done(at, batch.groups)

        def learn() -> Learned:
            if self._user is not None and not self._user.policy_learns(number):
                return Learned()
            measured = items or answers_told(at, batch.groups, self._trainer.model)
            return self._learner.learn(batch.groups, number, rng, measured, self._spec)

        learned = await anyio.to_thread.run_sync(learn)
        hers = None
        if self._user is not None:
            hers = await self._user.learn(number, batch.all_groups)
        times.learned()
        if not self._pace.in_flight:
            await self._pipeline.quiet()
        times.quiet()
        sync_gap = await self._engine.sync(number + 1)
        if self._user is not None:
            await self._user.advance(number + 1)
        times.synced()
        self._draws.learned(number, (e for g in batch.all_groups for e in g.episodes))
        curriculum = self._draws.curriculum
        figures = {
            **_of_batch(batch),
            **figures_of(learned, self._spec),
            "skipped_in_a_row": self._learner.skipped_in_a_row,
            "sync_gap": sync_gap,
            "curriculum": None if curriculum is None else dict(curriculum.metrics(number)),
            "users": await self._users.observe(number, batch.all_groups),
            "policy_version": number,
            "lr": grpo_lr(number, self._spec),
            "wait_s": waited_s,
            **times.figures(),
            "rollout_s": self._pipeline.busy.seconds - self._busy_before,
            "wall_s": time.monotonic() - self._started,
            "observed": observed,
        }
        if hers is not None:
            figures["alarms"] += hers.pop("alarms")
            figures["user_model"] = hers
        self._log(number, figures)
        at.folder.log_learned(learned_line(number, batch.groups, learned))
        self._began()
        await self._save(number + 1, learned_last(batch.record))
        return await self._validation.goes_on(number + 1)

    def _log(self, number: int, figures: dict[str, Any]) -> None:
        sampled, rollout_s = figures.pop("sampled_tokens"), figures["rollout_s"]
        figures["sampled_tokens_per_s"] = sampled / rollout_s if rollout_s else None
        for alarm in figures["alarms"]:
            _log.warning("iteration %d: %s", number, alarm)
            self._at.progress.note(f"iteration {number}: {alarm}")
        self._at.folder.log("iteration", iteration=number, **_sayable(figures))
        self._at.progress.advance(number + 1, reward=figures["reward_mean"])

    async def _save(self, done: int, learned: str) -> None:
        at = self._at
        is_due = done % at.run.checkpoint.every == 0 or done == self._spec.iterations
        if not is_due and not self._validation.is_due(done):
            return

        def save() -> None:
            if self._user is not None:
                self._user.save(done)
            at.journal.sync()  # what was learned from must not be less safe than what was learned
            counters: Counters = {
                "stage": "grpo",
                "iteration": done,
                COUNTER: self._beginning,
                LEARNED: learned,
            }
            save_checkpoint(
                at.folder.checkpoint, self._trainer, counters, keep=at.run.checkpoint.keep
            )
            if self._user is not None:
                self._user.saved(done)

        await anyio.to_thread.run_sync(save)


class _Times:
    """How long the parts of an iteration take, and how long something was sampled meanwhile."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._last = self._now()
        self._learn = self._quiet = self._sync = (0.0, 0.0)

    def _now(self) -> tuple[float, float]:
        return time.monotonic(), self._pipeline.busy.seconds

    def _lap(self) -> tuple[float, float]:
        now = self._now()
        lap = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return lap

    def learned(self) -> None:
        self._learn = self._lap()

    def quiet(self) -> None:
        self._quiet = self._lap()

    def synced(self) -> None:
        self._sync = self._lap()

    def figures(self) -> dict[str, float]:
        seconds, busy = (a + b for a, b in zip(self._learn, self._sync, strict=True))
        return {
            "learn_s": self._learn[0],
            "quiet_s": self._quiet[0],
            "sync_s": self._sync[0],
            "overlap": min(1.0, busy / seconds) if seconds else 0.0,
        }


def _of_batch(batch: Batch) -> dict[str, Any]:
    episodes = [episode for group in batch.all_groups for episode in group.episodes]
    return {
        **round_metrics(batch.all_groups),
        "rollout_rounds": batch.rounds,
        "groups_missing": len(batch.record.missing),
        "groups_dropped": len(batch.dropped),
        "groups_stale": batch.stale,
        "token_drift": token_drift(episodes),
    }


def _sayable(value: Any) -> Any:
    """The same with null for numbers that are none, which JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _sayable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(one) for one in value]
    return value
