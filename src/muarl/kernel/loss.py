"""Losses over the sampled tokens of a micro-batch, all flat: N sampled tokens.

Each loss is a sum divided by `num_tokens`, the number of sampled tokens of the whole update across
micro-batches and ranks. Adding the losses (and gradients) of the parts therefore gives those of the
whole, however it was cut: the token-level mean of DAPO (arXiv 2503.14476).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Ratios are held within e**-20 and e**20, where they no longer mean anything, so as to stay finite."""


@dataclass(slots=True)
class LossTotals:
    """Sums and extremes over tokens; those of micro-batches merge into those of an update.

    Attributes:
        num_tokens: Sampled tokens.
        ratio: Sum of ratios.
        ratio_max: Largest ratio.
        clipped_low: Tokens whose ratio was too low to earn gradient.
        clipped_high: Tokens whose ratio was too high to earn gradient.
        kl: Sum of k3 estimates against the reference; 0 without one.
        entropy: Sum of entropies.
        logprob_gap_max: Largest |trainer - sampler| log-prob.
    """

    num_tokens: int = 0
    ratio: float = 0.0
    ratio_max: float = 0.0
    clipped_low: int = 0
    clipped_high: int = 0
    kl: float = 0.0
    entropy: float = 0.0
    logprob_gap_max: float = 0.0

    def merge(self, other: LossTotals) -> None:
        """Add another micro-batch's totals."""
        self.num_tokens += other.num_tokens
        self.ratio += other.ratio
        self.ratio_max = max(self.ratio_max, other.ratio_max)
        self.clipped_low += other.clipped_low
        self.clipped_high += other.clipped_high
        self.kl += other.kl
        self.entropy += other.entropy
        self.logprob_gap_max = max(self.logprob_gap_max, other.logprob_gap_max)


def sft_loss(trainer_logprobs: Tensor, *, num_tokens: int) -> Tensor:
    """Cross entropy of the marked tokens: their negative log-probs over `num_tokens`."""
    return -trainer_logprobs.sum() / num_tokens


def grpo_loss(
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    advantages: Tensor,
    entropy: Tensor,
    *,
    num_tokens: int,
    clip_low: float,
    clip_high: float,
    kl_coef: float = 0.0,
    reference_logprobs: Tensor | None = None,
) -> tuple[Tensor, LossTotals]:
    """Clipped surrogate with a token-level ratio, and optionally the k3 divergence.

        ratio = exp(trainer - sampler)
        loss  = sum(-min(ratio·A, clip(ratio, 1 - clip_low, 1 + clip_high)·A) + kl_coef·k3) / num_tokens
        k3    = exp(reference - trainer) - (reference - trainer) - 1        (Schulman 2020)

    Example: sampler -1.0, trainer -0.5, A = 2, clip_high 0.28: ratio 1.649 is cut to 1.28, the
    token's loss is -2.56 and its gradient 0. With A = -2 nothing is cut: 3.297.

    Args:
        trainer_logprobs: [N] under the weights being trained, with gradient.
        sampler_logprobs: [N] as the sampler reported them.
        advantages: [N] of each token's episode.
        entropy: [N] for the metrics.
        num_tokens: Denominator, see above.
        clip_low: Lower clip.
        clip_high: Upper clip.
        kl_coef: Weight of the divergence.
        reference_logprobs: [N] under the reference; required when `kl_coef` is not 0.
    """
    log_ratio = (trainer_logprobs - sampler_logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = -torch.minimum(ratio * advantages, clipped * advantages)
    kl = torch.zeros_like(loss)
    if reference_logprobs is not None:
        gap = (reference_logprobs - trainer_logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
        kl = gap.exp() - gap - 1
        loss = loss + kl_coef * kl
    with torch.no_grad():
        totals = LossTotals(
            num_tokens=len(ratio),
            ratio=ratio.sum().item(),
            ratio_max=ratio.max().item(),
            clipped_low=int(((ratio < 1 - clip_low) & (advantages < 0)).sum()),
            clipped_high=int(((ratio > 1 + clip_high) & (advantages > 0)).sum()),
            kl=kl.sum().item(),
            entropy=entropy.sum().item(),
            logprob_gap_max=(trainer_logprobs - sampler_logprobs).abs().max().item(),
        )
    return loss.sum() / num_tokens, totals
