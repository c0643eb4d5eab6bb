"""A run from first to last: floor, cold start, GRPO, evaluation before and after.

Every stage ends with something on disk that a resumed run takes up:

    cold start   a checkpoint every 100 steps and where it ends; the cold model under cold_start/
    evaluation   its episodes; those in the journal are not played again
    GRPO         a checkpoint after each iteration; episodes of a broken-off one are used again
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from transformers import PreTrainedModel

from muarl.data.demonstrations import PHASE as COLD_START
from muarl.data.demonstrations import demonstrations
from muarl.data.stored import refuse_another_domain
from muarl.data.trivial import TRIVIAL
from muarl.domain import Domain
from muarl.errors import RecordError
from muarl.evaluate.held_out import HeldOut
from muarl.evaluate.summary import summarise
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.model import load_model, save_model
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.step import GrpoMetrics, SftMetrics, Trainer, sample_logprobs
from muarl.observe import Observation, Snapshot
from muarl.record import TRAIN, Episode, EpisodeKey, JournalWriter, Sample, read_journal
from muarl.record.whole import whole_folder
from muarl.render import Renderer
from muarl.scheduler import Fuse, Group
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, load_of
from muarl.scheduler.rounds import Interrupted, StopSignal, bounds, run_round
from muarl.seeds import generator
from muarl.spec import Located, RunSpec
from muarl.train.cold_start import cold_start
from muarl.train.engines import open_engine, shared_prompt
from muarl.train.grpo import (
    k3,
    round_metrics,
    split_updates,
    token_drift,
    training_set,
    update_metrics,
)
from muarl.train.policy_model import open_model, samples_of, save_with_tokenizer
from muarl.train.progress import Progress
from muarl.train.ready import refuse_no_room
from muarl.train.run_domain import ready_domain
from muarl.train.run_folder import RunFolder
from muarl.train.stage import stage_of
from muarl.train.weights import Engine

_STEPS_PER_CHECKPOINT = 100
_KL_SAMPLES = 32
"""Samples of a round on which the divergence from the cold start is measured when it is not held
down: enough for a curve, cheap enough to have in every round."""


async def train(
    located: Located[RunSpec],
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    domain: Domain | None = None,
    observation: Observation | None = None,
) -> None:
    """Carry a run to its end, from wherever its folder says it is.

    Args:
        located: The run file.
        folder: Where everything goes.
        progress: Told how far it is.
        stop: Drains on request.
        domain: The run's, where it was loaded already.
        observation: Told what happens to dialogues; its figures go into the metrics. The caller
            opens `observation.running()`.

    Raises:
        Interrupted: `stop` was requested; the run can be resumed.
        SetupError: The run was begun with another domain.
    """
    run = located.spec
    domain = domain or await ready_domain(located)
    with ExitStack() as stack:
        journal = stack.enter_context(JournalWriter(folder.journal))
        # A fault of last time is tried again: what caused it may have been mended.
        done = {e.key: e for e in read_journal(folder.journal) if not e.outcome.is_fault}
        refuse_another_domain(domain, done.values())
        progress.phase("model", 1)
        model, renderer = await open_model(domain, run, located.path, folder.model)
        prompt = await shared_prompt(domain, renderer)
        refuse_no_room(located, prompt)
        for kind in renderer.forks():
            progress.note(f"the chat template rewrites history after a {kind} turn: samples fork")
        observation = observation or Observation()
        await _Run(
            run, domain, folder, journal, done, model, renderer, prompt, progress, stop, observation
        ).go()


class _Run:
    """One run's stages; each begins where its folder says."""

    def __init__(
        self,
        run: RunSpec,
        domain: Domain,
        folder: RunFolder,
        journal: JournalWriter,
        done: dict[EpisodeKey, Episode],
        model: PreTrainedModel,
        renderer: Renderer,
        prompt: list[int],
        progress: Progress,
        stop: StopSignal,
        observation: Observation,
    ) -> None:
        self._run = run
        self._domain = domain
        self._folder = folder
        self._journal = journal
        self._done = done
        self._model = model
        self._renderer = renderer
        self._prompt = prompt
        self._progress = progress
        self._stop = stop
        self._observation = observation
        self._fuse = Fuse(run.rollout.max_fault_rate, run.rollout.concurrency)

    async def go(self) -> None:
        await self._floor()
        if self._run.cold_start is not None:
            await self._cold_start()
        cold_model = self._cold_model()
        async with open_engine(self._run, self._model, cold_model, self._prompt) as engine:
            await self._evaluate(engine, "cold")
            if self._run.grpo is not None:
                await self._grpo(engine)
                await self._evaluate(engine, "final")
        save_with_tokenizer(self._model, self._renderer.tokenizer, self._folder.model)

    def _cold_model(self) -> Path:
        """The folder of the weights that GRPO begins with, and is measured against.

        Until GRPO has a checkpoint they are the present ones, and the folder is written again.

        Raises:
            RecordError: It is gone, and the present weights are others already.
        """
        path = self._folder.path / "cold_start"
        stage, _ = stage_of(self._folder.checkpoint)
        if stage == COLD_START:
            with whole_folder(path) as draft:
                save_model(self._model, draft)
        elif not path.exists():
            raise RecordError(
                f"{path} is gone: GRPO has begun and needs the weights it began with. "
                "Restore the folder from a copy, or use --overwrite to start anew"
            )
        return path

    async def _floor(self) -> None:
        known = {line.get("name") for line in self._folder.lines() if line["kind"] == "floor"}
        todo = [name for name in TRIVIAL if name not in known]
        self._progress.phase("floor", len(todo))
        for number, name in enumerate(todo, start=1):
            episodes = await self._held_out().by_trivial(name)
            summary = summarise(episodes, seed=self._run.seed)
            self._folder.log("floor", name=name, success=msgspec.to_builtins(summary.success))
            self._progress.advance(number, **{name: summary.success.value})

    async def _cold_start(self) -> None:
        spec = self._run.cold_start
        assert spec is not None
        stage, first_step = stage_of(self._folder.checkpoint)
        if stage != COLD_START:
            return
        trainer = Trainer.for_cold_start(self._model)
        if first_step:
            load_checkpoint(self._folder.checkpoint, trainer)
        if first_step == spec.steps:
            return
        self._progress.phase("expert dialogues", spec.episodes)
        episodes = await demonstrations(
            self._domain,
            self._renderer,
            spec,
            self._run.rollout,
            run_seed=self._run.seed,
            journal=self._journal,
            done=self._done,
            stop=self._stop,
            on_episode=self._progress.advance,
            observer=self._observation,
        )
        success = summarise(episodes).success
        self._progress.note(
            f"{len(episodes)} expert dialogues verified by replay; success {success}"
        )
        self._folder.keep_lines(
            lambda line: line["kind"] != "cold_start" or line["step"] <= first_step
        )
        self._progress.phase("cold start", spec.steps)
        await anyio.to_thread.run_sync(self._supervise, trainer, samples_of(episodes), first_step)
        if trainer.num_updates < spec.steps:
            raise Interrupted

    def _supervise(self, trainer: Trainer, samples: Sequence[Sample], first_step: int) -> None:
        """Runs in a worker thread, so that the display and Ctrl-C stay alive."""
        spec = self._run.cold_start
        assert spec is not None
        steps = spec.steps

        def after(step: int, metrics: SftMetrics) -> bool:
            # Looked at once, so that a step that is the last is saved as such.
            ended = step == steps or self._stop.requested
            if step % 10 == 0 or ended:
                self._folder.log("cold_start", step=step, **msgspec.to_builtins(metrics))
                self._progress.advance(step, loss=metrics.loss)
            if step % _STEPS_PER_CHECKPOINT == 0 or ended:
                save_checkpoint(
                    self._folder.checkpoint, trainer, {"stage": COLD_START, "step": step}
                )
            return not ended

        rng = generator(self._run.seed, "cold start order")
        cold_start(trainer, samples, spec, rng, first_step=first_step, after_step=after)

    async def _evaluate(self, engine: Engine, phase: str) -> None:
        for temperature in self._run.eval.temperatures:
            known = [
                line
                for line in self._folder.lines()
                if line["kind"] == "eval"
                and (line["phase"], line["temperature"]) == (phase, temperature)
            ]
            if known:
                continue
            self._progress.phase(f"evaluate {phase}, T={temperature:g}", self._run.eval.episodes)
            counted = 0

            def count(group: Group) -> None:
                nonlocal counted
                counted += len(group.episodes)
                self._progress.advance(counted)

            started, before = time.monotonic(), self._observation.counters.snapshot()
            episodes = await self._held_out(count).by_policy(
                engine.policy, phase=phase, temperature=temperature
            )
            summary = summarise(episodes, seed=self._run.seed)
            self._folder.log(
                "eval",
                phase=phase,
                temperature=temperature,
                wall_s=time.monotonic() - started,
                observed=self._since(before),
                **msgspec.to_builtins(summary),
            )
            self._progress.note(
                f"held-out success, {phase}, T={temperature:g}: {summary.success} "
                f"on {summary.n} dialogues"
            )

    def _held_out(self, on_group: Callable[[Group], None] = lambda _group: None) -> HeldOut:
        return HeldOut(
            domain=self._domain,
            run=self._run,
            renderer=self._renderer,
            journal=self._journal,
            done=self._done,
            stop=self._stop,
            on_group=on_group,
            observer=self._observation,
        )

    def _since(self, before: Snapshot) -> dict[str, Any]:
        """What there was to be seen of the dialogues that came after a snapshot."""
        return self._observation.counters.snapshot().since(before).figures()

    async def _grpo(self, engine: Engine) -> None:
        spec = self._run.grpo
        assert spec is not None
        trainer = Trainer.for_grpo(self._model, spec)
        stage, first = stage_of(self._folder.checkpoint)
        if stage == "grpo":
            load_checkpoint(self._folder.checkpoint, trainer)
        else:
            first = 0
        await engine.sync(first)
        reference = load_model(self._folder.path / "cold_start")
        self._folder.keep_lines(
            lambda line: line["kind"] != "iteration" or line["iteration"] < first
        )
        self._progress.phase("GRPO", spec.iterations)
        for iteration in range(first, spec.iterations):
            await self._iteration(iteration, trainer, reference, engine)

    async def _iteration(
        self, iteration: int, trainer: Trainer, reference: PreTrainedModel, engine: Engine
    ) -> None:
        spec = self._run.grpo
        assert spec is not None
        started, before = time.monotonic(), self._observation.counters.snapshot()
        rng = generator(self._run.seed, "iteration", iteration)
        groups = await self._roll_out(iteration, engine, rng)
        rollout_s, observed = time.monotonic() - started, self._since(before)
        samples, advantages = training_set(groups, spec)

        def learn() -> tuple[list[GrpoMetrics], float | None]:
            """In a worker thread, as the cold start."""
            temperature = self._run.rollout.temperature
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
                    reference_logprobs=None
                    if logprobs is None
                    else [logprobs[id(s)] for s in part],
                )
                for part, values in split_updates(
                    samples, advantages, spec.updates_per_iteration, rng
                )
            ]
            return updates, divergence

        updates, divergence = await anyio.to_thread.run_sync(learn)
        sync_gap = await engine.sync(iteration + 1)
        save_checkpoint(
            self._folder.checkpoint, trainer, {"stage": "grpo", "iteration": iteration + 1}
        )
        episodes = [episode for group in groups for episode in group.episodes]
        metrics: dict[str, Any] = {
            **round_metrics(groups, seed=self._run.seed),
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
        self._folder.log("iteration", iteration=iteration, **metrics)
        self._progress.advance(iteration + 1, reward=metrics["reward_mean"])

    async def _roll_out(self, iteration: int, engine: Engine, rng: random.Random) -> list[Group]:
        run, spec = self._run, self._run.grpo
        assert spec is not None
        pool = self._domain.tasks(spec.split)
        tasks = rng.sample(pool, spec.tasks_per_iteration)
        runner = DialogueRunner(
            domain=self._domain,
            tasks=tasks,
            renderer=self._renderer,
            limits=run.rollout,
            user=run.user,
            policy_for=lambda _task, _key: engine.policy,
            observer=self._observation,
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
            journal=self._journal,
            done=self._done,
            stop=self._stop,
            fuse=self._fuse,
            observer=self._observation,
        )


def default_folder(run_file: Path) -> Path:
    """Where a run goes if nothing is said: `runs/<name of the run file>`."""
    return Path("runs") / run_file.stem
