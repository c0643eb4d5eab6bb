"""A cold start as a stage of a run: expert dialogues, then steps, from wherever it was left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import msgspec
from transformers import PreTrainedModel

from muarl.data.demonstrations import PHASE as COLD_START
from muarl.data.demonstrations import USER_PHASE as USER_COLD_START
from muarl.data.demonstrations import demonstrations
from muarl.data.role_reversal import role_reversed
from muarl.errors import TrainError
from muarl.evaluate.summary import summarise
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.step import SftMetrics, Trainer
from muarl.record import Episode, Sample
from muarl.scheduler.rounds import Interrupted
from muarl.seeds import generator
from muarl.spec.model import ColdStartSpec
from muarl.train.at_work import RunAtWork
from muarl.train.cold_start import cold_start
from muarl.train.models import samples_of
from muarl.train.stage import stage_of

_STEPS_PER_CHECKPOINT = 100


@dataclass(frozen=True)
class _Pupil:
    """Who has a cold start.

    Attributes:
        phase: Of its dialogues, and the kind of its lines in the metrics.
        of: In words, after "cold start".
        model: Moves.
        spec: How.
        checkpoint: Where it got to.
        samples: What it learns of dialogues.
    """

    phase: str
    of: str
    model: PreTrainedModel
    spec: ColdStartSpec
    checkpoint: Path
    samples: Callable[[Sequence[Episode]], Awaitable[list[Sample]]]


async def supervise(at: RunAtWork) -> None:
    """Have the policy's model imitate the expert, unless GRPO has begun.

    Raises:
        Interrupted: A stop was requested; where it got to is in the checkpoint.
    """

    async def samples(episodes: Sequence[Episode]) -> list[Sample]:
        return samples_of(episodes)

    if (spec := at.run.cold_start) is not None:
        checkpoint = at.folder.checkpoint
        await _supervise(at, _Pupil(COLD_START, "", at.model, spec, checkpoint, samples))


async def supervise_user(at: RunAtWork) -> None:
    """Have the users' model imitate the scripted user, likewise.

    Raises:
        Interrupted: As `supervise`.
        TrainError: More than one dialogue in a hundred does not fit into her context.
    """
    if (hers := at.user) is None or (spec := hers.spec.cold_start) is None:
        return
    tasks = {task.id: task for task in at.domain.tasks(spec.split)}

    async def samples(episodes: Sequence[Episode]) -> list[Sample]:
        turned = await role_reversed(
            *(at.domain, tasks, episodes, hers.renderer), context_tokens=hers.spec.context_tokens
        )
        if len(turned.lost) * 100 > len(episodes):
            raise TrainError(
                f"{len(turned.lost)} of {len(episodes)} expert dialogues are nothing for the user's "
                f"model to learn from; the first: {turned.lost[0]}"
            )
        return turned.samples

    checkpoint = at.folder.user_checkpoint
    await _supervise(
        at, _Pupil(USER_COLD_START, " of the user", hers.model, spec, checkpoint, samples)
    )


async def _supervise(at: RunAtWork, pupil: _Pupil) -> None:
    spec = pupil.spec
    stage, first_step = stage_of(pupil.checkpoint)
    if stage != COLD_START:
        return
    trainer = Trainer.for_cold_start(pupil.model)
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
        phase=pupil.phase,
        journal=at.journal,
        done=at.done,
        stop=at.stop,
        on_episode=at.progress.advance,
        observer=at.observation,
    )
    success = summarise(episodes).success
    at.progress.note(f"{len(episodes)} expert dialogues verified by replay; success {success}")
    at.folder.keep_lines(lambda line: line["kind"] != pupil.phase or line["step"] <= first_step)
    samples = await pupil.samples(episodes)
    at.progress.phase(f"cold start{pupil.of}", spec.steps)
    await anyio.to_thread.run_sync(_steps, at, pupil, trainer, samples, first_step)
    if trainer.num_updates < spec.steps:
        raise Interrupted


def _steps(
    at: RunAtWork, pupil: _Pupil, trainer: Trainer, samples: Sequence[Sample], first_step: int
) -> None:
    """Runs in a worker thread, so that the display and Ctrl-C stay alive."""
    spec = pupil.spec

    def after(step: int, metrics: SftMetrics) -> bool:
        # Looked at once, so that a step that is the last is saved as such.
        ended = step == spec.steps or at.stop.requested
        if step % 10 == 0 or ended:
            at.folder.log(pupil.phase, step=step, **msgspec.to_builtins(metrics))
            at.progress.advance(step, loss=metrics.loss)
        if step % _STEPS_PER_CHECKPOINT == 0 or ended:
            save_checkpoint(pupil.checkpoint, trainer, {"stage": COLD_START, "step": step})
        return not ended

    rng = generator(at.run.seed, f"cold start order{pupil.of}")
    cold_start(trainer, samples, spec, rng, first_step=first_step, after_step=after)
