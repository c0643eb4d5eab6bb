"""The supervised start: expert dialogues, the same rendering and mask as rollouts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from muarl.errors import TrainError
from muarl.kernel.optimizer import cold_start_lr
from muarl.kernel.step import SftMetrics, Trainer
from muarl.record import Sample
from muarl.spec.model import ColdStartSpec


def cold_start(
    trainer: Trainer,
    samples: Sequence[Sample],
    spec: ColdStartSpec,
    rng: random.Random,
    *,
    after_step: Callable[[int, SftMetrics], bool],
    first_step: int = 0,
) -> None:
    """Run the supervised updates.

    Args:
        trainer: Moves the weights.
        samples: Of expert episodes.
        spec: How many steps, how large, how fast.
        rng: Draws the order; the same one, fresh, when a cold start is taken up again.
        after_step: Told each step's number (from 1) and metrics; False ends the cold start there.
        first_step: Steps already done.

    Raises:
        TrainError: There is not one sample.
    """
    if not samples:
        raise TrainError(
            "the expert dialogues hold no message of the policy: nothing to learn from"
        )
    batches = islice(_batches(samples, spec.tokens_per_step, rng), first_step, None)
    for step in range(first_step, spec.steps):
        lr = cold_start_lr(step, steps=spec.steps, peak=spec.lr)
        if not after_step(step + 1, trainer.sft_step(next(batches), lr)):
            return


def _batches(samples: Sequence[Sample], tokens: int, rng: random.Random) -> Iterator[list[Sample]]:
    """Batches of about `tokens` tokens past the shared prompt, epoch after epoch."""
    batch: list[Sample] = []
    filled = 0
    while True:
        for sample in rng.sample(list(samples), len(samples)):
            batch.append(sample)
            filled += len(sample.token_ids) - sample.spans[0].start
            if filled >= tokens:
                yield batch
                batch, filled = [], 0
