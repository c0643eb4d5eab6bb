"""The supervised start: expert dialogues, the same rendering and mask as rollouts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from muarl.errors import TrainError
from muarl.kernel.optimizer import cold_start_lr
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import SftMetrics, Trainer
from muarl.record import Episode, Sample
from muarl.spec.model import ColdStartSpec

Dialogue = list[Sample]
"""What a dialogue gives to learn from: one sample, or several where its template rewrites history."""


def dialogues_of(episodes: Sequence[Episode]) -> list[Dialogue]:
    """What episodes give to learn from; those in which the policy said nothing give nothing."""
    found = ([sample for sample in episode.samples if sample.spans] for episode in episodes)
    return [dialogue for dialogue in found if dialogue]


def hold_out(
    episodes: Sequence[Episode], share: float, rng: random.Random
) -> tuple[list[Episode], list[Episode]]:
    """Set a share of the tasks apart, with all their episodes: (to learn from, to measure on).

    By task, since dialogues of one are much alike. Each side keeps a task at least, if there are two.
    """
    tasks = sorted({episode.key.task_id for episode in episodes})
    count = round(share * len(tasks))
    count = min(max(count, share > 0), len(tasks) - 1)
    apart = set(rng.sample(tasks, count)) if count > 0 else set()
    return (
        [episode for episode in episodes if episode.key.task_id not in apart],
        [episode for episode in episodes if episode.key.task_id in apart],
    )


def held_out_loss(trainer: Trainer, dialogues: Sequence[Dialogue]) -> float:
    """Mean negative log-prob of the policy's tokens in dialogues that are not learned from."""
    samples = [sample for dialogue in dialogues for sample in dialogue]
    rows = sample_logprobs(trainer.model, samples, kernel=trainer.kernel, ranks=trainer.ranks)
    return -math.fsum(map(math.fsum, rows)) / sum(map(len, rows))


def total_steps(spec: ColdStartSpec, dialogues: Sequence[Dialogue]) -> int:
    """Updates of a cold start: as it says, or as many as its epochs take."""
    return spec.steps or math.ceil((spec.epochs or 0) / _epoch_share(spec, dialogues))


def total_epochs(spec: ColdStartSpec, dialogues: Sequence[Dialogue]) -> float:
    """How often each dialogue is learned from."""
    return total_steps(spec, dialogues) * _epoch_share(spec, dialogues)


def cold_start(
    trainer: Trainer,
    dialogues: Sequence[Dialogue],
    spec: ColdStartSpec,
    rng: random.Random,
    *,
    after_step: Callable[[int, SftMetrics], bool],
    first_step: int = 0,
) -> None:
    """Run the supervised updates.

    Args:
        trainer: Moves the weights.
        dialogues: Of expert episodes.
        spec: How many steps, how large, how fast.
        rng: Draws the order; the same one, fresh, when a cold start is taken up again.
        after_step: Told each step's number (from 1) and metrics; False ends the cold start there.
        first_step: Steps already done.

    Raises:
        TrainError: There is not one dialogue.
    """
    if not dialogues:
        raise TrainError(
            "the expert dialogues hold no message of the policy: nothing to learn from"
        )
    steps = total_steps(spec, dialogues)
    batches = islice(_batches(dialogues, spec, rng), first_step, None)
    for step in range(first_step, steps):
        lr = cold_start_lr(step, spec, steps=steps)
        if not after_step(step + 1, trainer.sft_step(next(batches), lr)):
            return


def _batches(
    dialogues: Sequence[Dialogue], spec: ColdStartSpec, rng: random.Random
) -> Iterator[Dialogue]:
    """Samples of so many dialogues, or of about so many tokens, epoch after epoch."""
    budget = _budget(spec)
    batch: Dialogue = []
    filled = 0
    while True:
        for dialogue in rng.sample(list(dialogues), len(dialogues)):
            batch += dialogue
            filled += _size(spec, dialogue)
            if filled >= budget:
                yield batch
                batch, filled = [], 0


def _budget(spec: ColdStartSpec) -> int:
    """Of one update, in dialogues or tokens."""
    return spec.dialogues_per_step or spec.tokens_per_step or 1


def _size(spec: ColdStartSpec, dialogue: Dialogue) -> int:
    """In what the budget is counted in: tokens are those past the shared prompt."""
    if spec.dialogues_per_step:
        return 1
    return sum(len(sample.token_ids) - sample.spans[0].start for sample in dialogue)


def _epoch_share(spec: ColdStartSpec, dialogues: Sequence[Dialogue]) -> float:
    """Share of an epoch that an update takes."""
    return _budget(spec) / max(1, sum(_size(spec, dialogue) for dialogue in dialogues))
