"""The supervised start: expert dialogues, the same rendering and mask as rollouts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from muarl.kernel.optimizer import cold_start_lr
from muarl.kernel.step import SftMetrics, Trainer
from muarl.record import Sample
from muarl.spec.run import ColdStartSpec


def cold_start(
    trainer: Trainer,
    samples: Sequence[Sample],
    spec: ColdStartSpec,
    rng: random.Random,
    on_step: Callable[[int, SftMetrics], None],
) -> None:
    """Run the supervised updates.

    Args:
        trainer: Moves the weights.
        samples: Of expert episodes.
        spec: How many steps, how large, how fast.
        rng: Draws the order.
        on_step: Called after each step with its number (from 1) and its metrics.
    """
    batches = _batches(samples, spec.tokens_per_step, rng)
    for step in range(spec.steps):
        lr = cold_start_lr(step, steps=spec.steps, peak=spec.lr)
        on_step(step + 1, trainer.sft_step(next(batches), lr))


def _batches(
    samples: Sequence[Sample], tokens: int, rng: random.Random
) -> Iterator[list[Sample]]:
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
