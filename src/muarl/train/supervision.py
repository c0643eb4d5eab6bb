"""A cold start as a stage of a run: expert dialogues, then steps, from wherever it was left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import msgspec
from transformers import PreTrainedModel

from muarl.data.role_reversal import role_reversed
from muarl.errors import TrainError
from muarl.evaluate.summary import summarise
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.optimizer import cold_start_lr
from muarl.kernel.step import SftMetrics, Trainer
from muarl.record import Episode
from muarl.scheduler.rounds import Interrupted
from muarl.seeds import generator
from muarl.spec.model import ColdStartSpec
from muarl.synth.demonstrations import PHASE as COLD_START
from muarl.synth.demonstrations import USER_PHASE as USER_COLD_START
from muarl.synth.demonstrations import demonstrations
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


@dataclass(frozen=True)
class _Pupil:
    """Who has a cold start.

    Attributes:
        phase: Of its dialogues, and the kind of its lines in the metrics.
        of: In words, after "cold start".
        model: Moves.
        spec: How.
        checkpoint: Where it got to.
        dialogues: What it learns of episodes.
    """

    phase: str
    of: str
    model: PreTrainedModel
    spec: ColdStartSpec
    checkpoint: Path
    dialogues: Callable[[Sequence[Episode]], Awaitable[list[Dialogue]]]


async def supervise(at: RunAtWork) -> None:
    """Have the policy's model imitate the expert, unless GRPO has begun.

    Raises:
        Interrupted: A stop was requested; where it got to is in the checkpoint.
    """

    async def dialogues(episodes: Sequence[Episode]) -> list[Dialogue]:
        return dialogues_of(episodes)

    if (spec := at.run.cold_start) is not None:
        checkpoint = at.folder.checkpoint
        await _supervise(at, _Pupil(COLD_START, "", at.model, spec, checkpoint, dialogues))


async def supervise_user(at: RunAtWork) -> None:
    """Have the users' model imitate the scripted user, likewise.

    Raises:
        Interrupted: As `supervise`.
        TrainError: More than one dialogue in a hundred does not fit into her context.
    """
    if (hers := at.user) is None or (spec := hers.spec.cold_start) is None:
        return
    tasks = {task.id: task for task in at.domain.tasks(spec.split)}

    async def dialogues(episodes: Sequence[Episode]) -> list[Dialogue]:
        turned = await role_reversed(
            *(at.domain, tasks, episodes, hers.renderer), context_tokens=hers.spec.context_tokens
        )
        if len(turned.lost) * 100 > len(episodes):
            raise TrainError(
                f"{len(turned.lost)} of {len(episodes)} expert dialogues are nothing for the user's "
                f"model to learn from; the first: {turned.lost[0]}"
            )
        return turned.dialogues

    checkpoint = at.folder.user_checkpoint
    await _supervise(
        at, _Pupil(USER_COLD_START, " of the user", hers.model, spec, checkpoint, dialogues)
    )


async def _supervise(at: RunAtWork, pupil: _Pupil) -> None:
    spec = pupil.spec
    stage, first_step = stage_of(pupil.checkpoint)
    if stage != COLD_START:
        return
    trainer = Trainer.for_cold_start(pupil.model, spec, at.run.kernel, at.ranks)
    if first_step:
        load_checkpoint(pupil.checkpoint, trainer)
    if first_step == spec.steps:
        return
    at.progress.phase(f"expert dialogues{pupil.of}", spec.episodes)
    episodes = await demonstrations(
        at.domain,
        at.renderer,
        spec,
        at.run.rollout,
        run_seed=at.run.seed,
        home=at.home,
        phase=pupil.phase,
        journal=at.journal,
        done=at.done,
        stop=at.stop,
        on_episode=at.progress.advance,
        observer=at.observation,
        crew=at.crew,
        loop=at.loop,
    )
    success = summarise(episodes).success
    whose = "expert dialogues verified" if spec.file is None else f"dialogues of {spec.file}"
    at.progress.note(f"{len(episodes)} {whose}; success {success}")
    at.folder.keep_lines(lambda line: line["kind"] != pupil.phase or line["step"] <= first_step)
    learned, apart = hold_out(episodes, spec.held_out, generator(at.run.seed, "cold start apart"))
    dialogues, measured = [await pupil.dialogues(side) for side in (learned, apart)]
    steps, epochs = total_steps(spec, dialogues), total_epochs(spec, dialogues)
    if first_step >= steps:
        return
    if (spec.warmup_steps or 0) > steps:
        raise TrainError(
            f"cold_start.warmup_steps: the rate would rise until {spec.warmup_steps}, and "
            f"{spec.epochs:g} epochs of these dialogues are {steps} updates; take fewer"
        )
    at.progress.note(str(trainer.found))
    if epochs > _MANY_EPOCHS:
        at.progress.note(
            f"the cold start learns from each dialogue {epochs:.1f} times: that lowers its loss, and "
            "can lower what reinforcement learning reaches. Choose by the curve after it, not by this"
        )
    at.progress.phase(f"cold start{pupil.of}", steps)
    await anyio.to_thread.run_sync(
        _steps, at, pupil, trainer, dialogues, measured, first_step, steps
    )
    if trainer.num_updates < steps:
        raise Interrupted


def _steps(
    at: RunAtWork,
    pupil: _Pupil,
    trainer: Trainer,
    dialogues: Sequence[Dialogue],
    apart: Sequence[Dialogue],
    first_step: int,
    steps: int,
) -> None:
    """Runs in a worker thread, so that the display and Ctrl-C stay alive."""
    spec = pupil.spec
    shown: dict[str, float] = {}  # beside the loss; measured seldom, and shown until it is again

    def after(step: int, metrics: SftMetrics) -> bool:
        # Looked at once, so that a step that is the last is saved as such.
        (stops,) = at.ranks.largest(at.stop.requested)
        ended = step == steps or stops > 0
        whole = step % _STEPS_PER_CHECKPOINT == 0 or ended
        if step % 10 == 0 or ended:
            figures = msgspec.to_builtins(metrics)
            figures["lr"] = cold_start_lr(step - 1, spec, steps=steps)
            if whole and apart:
                figures["held_out_loss"] = shown["held_out_loss"] = held_out_loss(trainer, apart)
            at.folder.log(pupil.phase, step=step, **figures)
            at.progress.advance(step, loss=metrics.loss, **shown)
        if whole:
            save_checkpoint(pupil.checkpoint, trainer, {"stage": COLD_START, "step": step})
        return not ended

    rng = generator(at.run.seed, f"cold start order{pupil.of}")
    cold_start(trainer, dialogues, spec, rng, first_step=first_step, after_step=after)
