"""Importance correction: the sampler and the trainer do not quite agree on the same weights.

Engines round otherwise than the trainer, quantise, or run under weights that are a step behind. What
was sampled is then not quite what the trainer's policy would sample, and long runs drift (TIS: Yao et
al. 2025, "Your efficient RL framework secretly brings you off-policy training"; MIS: Liu et al. 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from muarl.kernel.divergence import MAX_LOG_RATIO
from muarl.spec.grpo import CorrectionSpec


class Mismatch(msgspec.Struct, frozen=True):
    """How far the sampler was from the trainer. Means are over sampled tokens.

    Attributes:
        kl: k3 estimate of KL(sampler || trainer).
        chi2: Mean of the squared token ratios less 1: the variance that unbounded weights would have.
        largest_gap: Largest |trainer - sampler| log-prob.
        truncated: Share of tokens whose weight was cut.
        rejected: Share of tokens that were left out.
    """

    kl: float
    chi2: float
    largest_gap: float
    truncated: float
    rejected: float


class Correction(NamedTuple):
    """What became of the sampled tokens, sample by sample.

    Attributes:
        weights: Factor of each token's loss.
        kept: Whether it counts at all.
        mismatch: For the metrics.
    """

    weights: list[list[float]]
    kept: list[list[bool]]
    mismatch: Mismatch


def importance_correction(
    trainer_logprobs: Sequence[Sequence[float]],
    sampler_logprobs: Sequence[Sequence[float]],
    spec: CorrectionSpec,
) -> Correction:
    """Weigh what was sampled by how likely the trainer finds it.

    With l = trainer - sampler of a token, w is exp(l); the product over the sample for level
    `sequence`; its geometric mean for `geometric`.

    Example: l = (0, 1), truncate 2, reject_above 2.5. Token: w = (1, 2.718), the second is rejected.
    Geometric: w = exp(1/2) = 1.649 for both, and both are kept.

    Args:
        trainer_logprobs: [K, n] of K samples, under the trainer's weights before the iteration's
            first update.
        sampler_logprobs: [K, n] as sampled.
        spec: Level and bounds.
    """
    weights, kept = [], []
    truncated = rejected = 0
    kl = chi2 = largest_gap = 0.0
    for trainer, sampler in zip(trainer_logprobs, sampler_logprobs, strict=True):
        gaps = [ours - theirs for ours, theirs in zip(trainer, sampler, strict=True)]
        held = [_held(gap) for gap in gaps]
        ratios = [math.exp(value) for value in _levelled(held, spec.level)]
        row = [min(ratio, spec.truncate) if spec.truncate else 1.0 for ratio in ratios]
        keep = [
            (spec.reject_below or 0.0) <= ratio <= (spec.reject_above or math.inf)
            for ratio in ratios
        ]
        weights.append(row)
        kept.append(keep)
        truncated += sum(ratio > (spec.truncate or math.inf) for ratio in ratios)
        rejected += len(keep) - sum(keep)
        kl += math.fsum(math.exp(gap) - gap - 1 for gap in held)
        chi2 += math.fsum(math.exp(2 * gap) - 1 for gap in held)
        largest_gap = max([largest_gap, *map(abs, gaps)])
    count = sum(map(len, kept)) or 1
    mismatch = Mismatch(kl / count, chi2 / count, largest_gap, truncated / count, rejected / count)
    return Correction(weights, kept, mismatch)


def _levelled(gaps: Sequence[float], level: str) -> list[float]:
    """Each token's log of w."""
    if level == "token" or not gaps:
        return list(gaps)
    total = math.fsum(gaps)
    return [_held(total if level == "sequence" else total / len(gaps))] * len(gaps)


def _held(value: float) -> float:
    return max(-MAX_LOG_RATIO, min(MAX_LOG_RATIO, value))
