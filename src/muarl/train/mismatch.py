"""Whether the sampler samples what the trainer believes, at the same weights.

What is sampled by older weights differs from what the trainer believes because it has learned since. Only
tokens that its present weights sampled tell of the engine itself: of its rounding, or of weights that
did not arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import torch
from transformers import PreTrainedModel

from muarl.kernel.divergence import divergence
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.scoring import sample_logprobs
from muarl.record import Sample
from muarl.spec.kernel import KernelSpec


class Mismatch(msgspec.Struct, frozen=True):
    """How far the sampler is from the trainer, over some tokens.

    Attributes:
        kl: Mean k3 estimate of KL(sampler || trainer).
        largest_gap: Largest |trainer - sampler| log-prob.
        tokens: How many were looked at.
    """

    kl: float
    largest_gap: float
    tokens: int


class Compared(NamedTuple):
    """What a comparison found, and by what.

    Attributes:
        found: Over all tokens of the present weights.
        samples: Positions of the samples that were looked at.
        logprobs: The trainer's, of each of their sampled tokens.
    """

    found: Mismatch
    samples: list[int]
    logprobs: list[list[float]]

    def pairs(self, samples: Sequence[Sample]) -> list[tuple[Sample, list[float]]]:
        """The samples that were looked at, of those that were given, with their log-probs."""
        looked_at = (samples[number] for number in self.samples)
        return list(zip(looked_at, self.logprobs, strict=True))


def mismatch(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    *,
    version: int,
    temperature: float,
    most: int,
    kernel: KernelSpec | None = None,
    ranks: Ranks = ALONE,
) -> Compared | None:
    """Compare the sampler's log-probs with the trainer's.

    Args:
        model: The trainer's, before it learns from the samples.
        samples: With the sampler's log-probs.
        version: Of the model's weights: tokens of other versions are left out.
        temperature: Of the sampler.
        most: Samples that are looked at.
        kernel: What the trainer may take, and in what precision it learns.
        ranks: Who share them out; all of them call.

    Returns:
        None where no token was sampled by these weights.
    """
    looked_at = [
        number
        for number, sample in enumerate(samples)
        if any(span.policy_version == version for span in sample.spans)
    ][:most]
    if not looked_at:
        return None
    chosen = [samples[number] for number in looked_at]
    trainer = sample_logprobs(model, chosen, temperature=temperature, kernel=kernel, ranks=ranks)
    pairs = [
        pair
        for sample, row in zip(chosen, trainer, strict=True)
        for pair in _of_version(sample, row, version)
    ]
    theirs, ours = torch.tensor(pairs, dtype=torch.float64).unbind(1)
    kl = divergence(theirs, ours, estimator="k3").mean().item()
    found = Mismatch(kl, (ours - theirs).abs().max().item(), len(pairs))
    return Compared(found, looked_at, trainer)


def _of_version(
    sample: Sample, trainer: Sequence[float], version: int
) -> Iterator[tuple[float, float]]:
    at = 0
    for span in sample.spans:
        count = span.end - span.start
        if span.policy_version == version:
            yield from zip(sample.logprobs[at : at + count], trainer[at : at + count], strict=True)
        at += count
