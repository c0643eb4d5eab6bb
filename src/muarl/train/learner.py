"""One model that learns from rounds of dialogues: the policy's, or that of a user."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transformers import PreTrainedModel

from muarl.kernel.step import GrpoMetrics, Trainer, sample_logprobs
from muarl.record import Sample
from muarl.spec.grpo import UpdateSpec
from muarl.train.grpo import TrainingSet, divergence_from, split_updates

_KL_SAMPLES = 32
"""Samples of a round on which the divergence from the cold start is measured when it is not held
down: enough for a curve, cheap enough to have in every round."""


class Learned(NamedTuple):
    """What became of a round's episodes.

    Attributes:
        updates: What each saw.
        divergence: Mean over sampled tokens from the model that GRPO began with.
        dropped: Episodes that were left out of the loss, by why.
        credit: What the credit of turns made of the episodes' advantages.
    """

    updates: list[GrpoMetrics]
    divergence: float | None
    dropped: Mapping[str, int]
    credit: Mapping[str, float]


@dataclass(frozen=True)
class Learner:
    """Learns.

    Attributes:
        trainer: Moves its weights.
        reference: The model as GRPO began with it.
        spec: The pieces of the loss.
        temperature: At which its messages are sampled.
    """

    trainer: Trainer
    reference: PreTrainedModel
    spec: UpdateSpec
    temperature: float

    def gaps(self, samples: Sequence[Sample]) -> tuple[list[list[float]], list[float]]:
        """Log-probs under the reference, and how far each sample is from it."""
        theirs = sample_logprobs(self.reference, samples, temperature=self.temperature)
        return theirs, divergence_from(samples, theirs, self.spec)

    def learn(self, found: TrainingSet, *, lr: float, rng: random.Random) -> Learned:
        """Take a round's updates; `rng` deals its samples into them. Blocks for as long."""
        spec = self.spec
        in_loss = spec.kl_coef > 0 and spec.kl_in == "loss"
        ours = found.samples if in_loss else found.samples[:_KL_SAMPLES]
        theirs, gaps = self.gaps(ours)
        tokens = sum(s.num_sampled for s in ours)
        old = None
        if spec.correction is not None:
            old = sample_logprobs(self.trainer.model, found.samples, temperature=self.temperature)
        updates = [
            self.trainer.grpo_update(
                [found.samples[i] for i in part],
                [found.advantages[i] for i in part],
                spec=spec,
                lr=lr,
                temperature=self.temperature,
                reference_logprobs=[theirs[i] for i in part] if in_loss else None,
                old_logprobs=None if old is None else [old[i] for i in part],
            )
            for part in split_updates(len(found.samples), spec.updates_per_iteration, rng)
        ]
        divergence = math.fsum(gaps) / tokens if tokens else None
        return Learned(updates, divergence, found.dropped, found.credit_metrics())
