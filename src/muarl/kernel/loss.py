"""Losses over the sampled tokens of a micro-batch, all flat: N sampled tokens of K samples.

A loss is a sum over tokens of loss times share (see `muarl.kernel.aggregation`). Shares are settled
for the whole update, so the losses and gradients of its parts add up to those of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from muarl.kernel.divergence import MAX_LOG_RATIO, divergence
from muarl.spec.grpo import UpdateSpec


@dataclass(slots=True)
class LossTotals:
    """Sums and extremes over the tokens that count; those of micro-batches merge into those of an update.

    Attributes:
        num_tokens: Sampled tokens that have a share in the loss: a rejected one is in nothing here.
        ratio: Sum of ratios.
        ratio_max: Largest ratio.
        clipped_low: Tokens whose ratio was too low to earn gradient.
        clipped_high: Tokens whose ratio was too high to earn gradient.
        kl: Sum of estimates of the divergence from the reference; 0 without one.
        entropy: Sum of entropies.
        logprob_gap_max: Largest |trainer - old| log-prob.
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


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What an update knows of each sampled token before the model is asked.

    Attributes:
        old_logprobs: [N] under the policy that the ratio is taken to: the sampler's, or with a
            correction those of the trainer before the iteration's first update.
        advantages: [N] of each token.
        shares: [N] of each token in the loss of the update; 0 leaves it out.
        importance: [N] weight of a token's surrogate; None is 1 throughout.
        reference_logprobs: [N] under the reference; required where a divergence is in the loss.
    """

    old_logprobs: Tensor
    advantages: Tensor
    shares: Tensor
    importance: Tensor | None = None
    reference_logprobs: Tensor | None = None


def sft_loss(logprobs: Tensor, *, num_tokens: int) -> Tensor:
    """Cross entropy of sampled tokens: `-sum(logprob) / num_tokens`.

    Example: log-probs -0.5 and -1.5 of an update's 4 tokens: 0.5. The parts of an update add up to its loss.

    Args:
        logprobs: [N] of the tokens of this micro-batch under the weights being trained, with gradient.
        num_tokens: Sampled tokens of the whole update.

    Returns:
        [] the loss's part.
    """
    return -logprobs.sum() / num_tokens


def grpo_loss(
    logprobs: Tensor,
    entropy: Tensor,
    terms: TokenTerms,
    owners: Tensor,
    spec: UpdateSpec,
) -> tuple[Tensor, LossTotals]:
    """Surrogate of each token, with divergence and entropy, summed by the tokens' shares.

        loss = sum(share · (importance · surrogate + kl_coef · kl - entropy_coef · entropy))

    Example: old -1.0, trainer -0.5, A = 2, clip_high 0.28: ratio 1.649 is cut to 1.28, the token's
    loss is -2.56 and its gradient 0. With A = -2 nothing is cut: 3.297.

    Args:
        logprobs: [N] under the weights being trained, with gradient.
        entropy: [N] of the distribution each token was drawn from; with gradient where it is
            rewarded.
        terms: What else is known of each token.
        owners: [N] number of the sample of each token, from 0, in order.
        spec: The pieces.

    Returns:
        [] the loss's part of these tokens, with gradient; and what was seen of them, without.
    """
    kept = terms.shares != 0
    log_ratio = log_ratios(logprobs - terms.old_logprobs, owners, spec.ratio, kept)
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    loss = surrogate(ratio, terms.advantages, logprobs, spec)
    if terms.importance is not None:
        loss = loss * terms.importance
    kl = torch.zeros_like(loss)
    if terms.reference_logprobs is not None:
        kl = divergence(
            logprobs,
            terms.reference_logprobs,
            estimator=spec.kl_estimator,
            largest=spec.kl_max,
        )
        if spec.kl_in == "loss":
            loss = loss + spec.kl_coef * kl
    if spec.entropy_coef:
        loss = loss - spec.entropy_coef * entropy
    with torch.no_grad():
        low, high = 1 - spec.clip_low, 1 + spec.clip_high
        ratio, advantages = ratio[kept], terms.advantages[kept]
        totals = LossTotals(
            num_tokens=len(ratio),
            ratio=ratio.sum().item(),
            ratio_max=_largest(ratio),
            clipped_low=int(((ratio < low) & (advantages < 0)).sum()),
            clipped_high=int(((ratio > high) & (advantages > 0)).sum()),
            kl=kl[kept].sum().item(),
            entropy=entropy[kept].sum().item(),
            logprob_gap_max=_largest((logprobs - terms.old_logprobs)[kept].abs()),
        )
    return (loss * terms.shares).sum(), totals


def _largest(values: Tensor) -> float:
    """0 without one: of a micro-batch every token may be rejected."""
    return values.max().item() if len(values) else 0.0


def log_ratios(gaps: Tensor, owners: Tensor, level: str, kept: Tensor | None = None) -> Tensor:
    """Log of the probability ratio at each token, of the token or of its sample.

        token     gap                               (PPO, arXiv 1707.06347)
        sequence  mean of the sample's kept gaps    (GSPO, arXiv 2507.18071, equation 7)

    A token that was rejected is in no mean: it would move, and be moved by, the ratio of the others.

        gaps [0.2, 0.4, 9.0] of one sample, the last rejected   ->   sequence [0.3, 0.3, 0.3]

    Args:
        gaps: [N] trainer - old log-probs.
        owners: [N] number of each token's sample.
        level: `token` or `sequence`.
        kept: [N] whether each token counts; None is all of them.

    Returns:
        [N].
    """
    if level == "token":
        return gaps
    kept = torch.ones_like(owners, dtype=torch.bool) if kept is None else kept
    sums = gaps.new_zeros(int(owners.max()) + 1)
    counts = sums.index_add(0, owners, kept.to(gaps))
    means = sums.index_add(0, owners, gaps.where(kept, 0.0)) / counts.clamp(min=1)
    return means[owners]


def surrogate(ratio: Tensor, advantages: Tensor, logprobs: Tensor, spec: UpdateSpec) -> Tensor:
    """Each token's loss for its advantage A, with r the ratio and c(r) the clipped one.

        clip   -min(r·A, c(r)·A)                     (PPO, arXiv 1707.06347)
               where A < 0 at most -dual_clip·A      (dual clip, arXiv 1912.09729)
        cispo  -stop(c(r))·A·logprob                 (CISPO, arXiv 2506.13585, equation 4)

    Args:
        ratio: [N], with gradient.
        advantages: [N].
        logprobs: [N] under the weights being trained, with gradient.
        spec: Clips.

    Returns:
        [N] with gradient; not yet weighed by importance or share.
    """
    clipped = ratio.clamp(1 - spec.clip_low, 1 + spec.clip_high)
    if spec.surrogate == "cispo":
        return -clipped.detach() * advantages * logprobs
    loss = -torch.minimum(ratio * advantages, clipped * advantages)
    if spec.dual_clip is None:
        return loss
    bound = -spec.dual_clip * advantages
    return torch.where(advantages < 0, torch.minimum(loss, bound), loss)
