"""The cold start as a stage of a run: expert dialogues, then steps, from wherever it was left."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
import msgspec

from muarl.data.demonstrations import PHASE as COLD_START
from muarl.data.demonstrations import demonstrations
from muarl.evaluate.summary import summarise
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.optimizer import cold_start_lr
from muarl.kernel.step import SftMetrics, Trainer
from muarl.scheduler.rounds import Interrupted
from muarl.seeds import generator
from muarl.train.at_work import RunAtWork
from muarl.train.cold_start import (
    Dialogue,
    cold_start,
    dialogues_of,
    held_out_loss,
    hold_out,
    total_epochs,
    total_steps,
)
from muarl.train.stage import stage_of

_STEPS_PER_CHECKPOINT = 100
_MANY_EPOCHS = 3
"""Beyond which a cold start is warned of: see `docs/kernel.md`."""


async def supervise(at: RunAtWork) -> None:
    """Have the model imitate the expert, unless GRPO has begun.

    Raises:
        Interrupted: A stop was requested; where it got to is in the checkpoint.
    """
    spec = at.run.cold_start
    assert spec is not None
    stage, first_step = stage_of(at.folder.checkpoint)
    if stage != COLD_START:
        return
    trainer = Trainer.for_cold_start(at.model, spec, at.run.kernel)
    if first_step:
        load_checkpoint(at.folder.checkpoint, trainer)
    if first_step == spec.steps:
        return
    at.progress.phase("expert dialogues", spec.episodes)
    episodes = await demonstrations(
        at.domain,
        at.renderer,
        spec,
        at.run.rollout,
        run_seed=at.run.seed,
        journal=at.journal,
        done=at.done,
        stop=at.stop,
        on_episode=at.progress.advance,
        observer=at.observation,
    )
    success = summarise(episodes).success
    at.progress.note(f"{len(episodes)} expert dialogues verified by replay; success {success}")
    at.folder.keep_lines(lambda line: line["kind"] != "cold_start" or line["step"] <= first_step)
    learned, apart = hold_out(episodes, spec.held_out, generator(at.run.seed, "cold start apart"))
    dialogues = dialogues_of(learned)
    steps, epochs = total_steps(spec, dialogues), total_epochs(spec, dialogues)
    if first_step >= steps:
        return
    at.progress.note(str(trainer.found))
    if epochs > _MANY_EPOCHS:
        at.progress.note(
            f"the cold start learns from each dialogue {epochs:.1f} times: that lowers its loss, and "
            "can lower what reinforcement learning reaches. Choose by the curve after it, not by this"
        )
    at.progress.phase("cold start", steps)
    await anyio.to_thread.run_sync(
        _steps, at, trainer, dialogues, dialogues_of(apart), first_step, steps
    )
    if trainer.num_updates < steps:
        raise Interrupted


def _steps(
    at: RunAtWork,
    trainer: Trainer,
    dialogues: Sequence[Dialogue],
    apart: Sequence[Dialogue],
    first_step: int,
    steps: int,
) -> None:
    """Runs in a worker thread, so that the display and Ctrl-C stay alive."""
    spec = at.run.cold_start
    assert spec is not None

    def after(step: int, metrics: SftMetrics) -> bool:
        # Looked at once, so that a step that is the last is saved as such.
        ended = step == steps or at.stop.requested
        whole = step % _STEPS_PER_CHECKPOINT == 0 or ended
        if step % 10 == 0 or ended:
            figures = msgspec.to_builtins(metrics)
            figures["lr"] = cold_start_lr(step - 1, spec, steps=steps)
            if whole and apart:
                figures["held_out_loss"] = held_out_loss(trainer, apart)
            at.folder.log("cold_start", step=step, **figures)
            at.progress.advance(step, loss=metrics.loss)
        if whole:
            save_checkpoint(at.folder.checkpoint, trainer, {"stage": COLD_START, "step": step})
        return not ended

    rng = generator(at.run.seed, "cold start order")
    cold_start(trainer, dialogues, spec, rng, first_step=first_step, after_step=after)
