"""One optimizer update, supervised or GRPO."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import torch
from torch import Tensor
from transformers import PreTrainedModel

from muarl.errors import NonFiniteLoss, TrainError
from muarl.kernel.aggregation import token_shares
from muarl.kernel.batch import MicroBatch
from muarl.kernel.correction import Mismatch, importance_correction
from muarl.kernel.logprobs import TokenScores, scored
from muarl.kernel.loss import LossTotals, TokenTerms, grpo_loss, sft_loss
from muarl.kernel.optimizer import Optimizer, adamw, muon
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import forget_gradients, full, sum_gradients, whole
from muarl.kernel.ways import way_for
from muarl.record.sample import Sample
from muarl.spec.grpo import UpdateSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.model import ColdStartSpec

Advantage = float | Sequence[float]
"""Of a sample, or of each of its sampled tokens."""


class SftMetrics(msgspec.Struct, frozen=True):
    """What a supervised step saw.

    Attributes:
        loss: Mean negative log-prob of the marked tokens, before the update.
        num_tokens: Marked tokens.
        grad_norm: Before clipping.
        entropy: Mean over the marked tokens.
    """

    loss: float
    num_tokens: int
    grad_norm: float
    entropy: float


class GrpoMetrics(msgspec.Struct, frozen=True):
    """What a GRPO update saw of the sampled tokens that count: rejected ones are in nothing but `mismatch`.

    Where every token was rejected all is 0, for nothing was learned.

    Attributes:
        loss: Before the update.
        num_tokens: Sampled tokens that count; what follows are means over them, if nothing else is said.
        grad_norm: Before clipping.
        ratio_mean: Of trainer to sampler probability.
        ratio_max: Largest ratio.
        clip_low_fraction: Tokens whose ratio was too low to earn gradient.
        clip_high_fraction: Tokens whose ratio was too high to earn gradient.
        kl: Divergence from the reference; 0 without one.
        entropy: On sampled tokens only.
        max_logprob_gap: Largest |trainer - old| log-prob; where the old ones are the sampler's and the
            weights are the ones that sampled, the sampler's error.
        mismatch: Of sampler and trainer, where it is corrected for.
    """

    loss: float
    num_tokens: int
    grad_norm: float
    ratio_mean: float
    ratio_max: float
    clip_low_fraction: float
    clip_high_fraction: float
    kl: float
    entropy: float
    max_logprob_gap: float
    mismatch: Mismatch | None = None


class Trainer:
    """Moves a model's weights, in place; whoever shares the model sees the new ones at once.

    Of several ranks each calls the same methods with the same arguments; they share out the samples, and
    all get the same answers.

    Attributes:
        model: The model.
        ranks: Who train it together.
        kernel: What updates may take of memory, time and precision.
        optimizer: Its optimizer.
        found: How the model is run, and why so.
        num_updates: Updates made so far.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        optimizer: Optimizer,
        *,
        max_grad_norm: float = 1.0,
        kernel: KernelSpec | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model = model.eval()  # dropout would make the ratio wrong
        self.ranks = ranks
        self.kernel = kernel or KernelSpec()
        with whole(model):
            self.found = way_for(model, self.kernel)
        self.optimizer = optimizer
        self.num_updates = 0
        self._max_grad_norm = max_grad_norm

    @classmethod
    def for_cold_start(
        cls,
        model: PreTrainedModel,
        spec: ColdStartSpec | None = None,
        kernel: KernelSpec | None = None,
        ranks: Ranks = ALONE,
    ) -> Trainer:
        """Muon or AdamW, all parameters."""
        spec, kernel = spec or ColdStartSpec(), kernel or KernelSpec()
        if spec.optimizer == "muon":
            return cls(model, muon(model), kernel=kernel, ranks=ranks)
        optimizer = adamw(
            model,
            freeze_embeddings=False,
            weight_decay=spec.weight_decay,
            bits=kernel.optimizer_bits,
        )
        return cls(model, optimizer, kernel=kernel, ranks=ranks)

    @classmethod
    def for_grpo(
        cls,
        model: PreTrainedModel,
        spec: UpdateSpec,
        kernel: KernelSpec | None = None,
        ranks: Ranks = ALONE,
    ) -> Trainer:
        """AdamW, embeddings frozen if the spec says so."""
        kernel = kernel or KernelSpec()
        optimizer = adamw(
            model,
            freeze_embeddings=spec.freeze_embeddings,
            weight_decay=spec.weight_decay,
            bits=kernel.optimizer_bits,
        )
        return cls(model, optimizer, max_grad_norm=spec.max_grad_norm, kernel=kernel, ranks=ranks)

    def sft_step(self, samples: Sequence[Sample], lr: float) -> SftMetrics:
        """Make the marked tokens of samples more likely.

        Raises:
            TrainError: No sample has a marked token.
            NonFiniteLoss: The loss or the gradient is not finite; weights are as before.
        """
        num_tokens = _count(samples)
        mine = [samples[index] for index in self.ranks.share(samples)]
        loss, entropy = 0.0, 0.0
        with whole(self.model):
            for _, scores in self._scored(mine):
                loss += self._backward(sft_loss(scores.logprobs, num_tokens=num_tokens))
                entropy += scores.entropy.sum().item()
                if not math.isfinite(loss):
                    break
            loss, entropy = self.ranks.total(loss, entropy)
            self._sum_gradients(loss)
        return SftMetrics(
            loss=loss,
            num_tokens=num_tokens,
            grad_norm=self._update(lr),
            entropy=entropy / num_tokens,
        )

    def grpo_update(
        self,
        samples: Sequence[Sample],
        advantages: Sequence[Advantage | None],
        *,
        spec: UpdateSpec,
        lr: float | None,
        temperature: float = 1.0,
        reference_logprobs: Sequence[Sequence[float]] | None = None,
        old_logprobs: Sequence[Sequence[float]] | None = None,
        num_tokens: int | None = None,
        num_samples: int | None = None,
    ) -> GrpoMetrics:
        """Move the policy toward samples of positive advantage.

        Args:
            samples: With the sampler's log-probs.
            advantages: One per sample, or one for each of its sampled tokens; None (a fault) leaves
                the sample out altogether.
            spec: The pieces of the loss.
            lr: Learning rate; None only looks, and moves nothing. So does an update of which every token is
                rejected.
            temperature: The sampler's.
            reference_logprobs: Like the samples' log-probs, under the reference policy.
            old_logprobs: Likewise, under this model's weights before the iteration's first update;
                needed where sampler and trainer are corrected for.
            num_tokens: Kept tokens of the whole update, where these samples are a part of it.
            num_samples: Samples of it likewise.

        Raises:
            TrainError: Nothing to train, log-probs missing, or no reference though its weight is
                not 0.
            NonFiniteLoss: The loss or the gradient is not finite; weights are as before.
        """
        needs_reference = spec.kl_coef > 0 and spec.kl_in == "loss"
        if needs_reference and reference_logprobs is None:
            raise TrainError("kl_coef is not 0, but no reference log-probs were given")
        if spec.correction is not None and old_logprobs is None:
            raise TrainError("a correction is asked for, but no old log-probs were given")
        kept = [i for i, advantage in enumerate(advantages) if advantage is not None]
        samples = [samples[i] for i in kept]
        per_token = [_per_token(advantages[i], s) for i, s in zip(kept, samples, strict=True)]
        sampler = _checked("sampler", samples, [sample.logprobs for sample in samples])
        reference = _chosen("reference", samples, reference_logprobs, kept)
        old = _chosen("old", samples, old_logprobs, kept)
        _count(samples)
        counts = [[True] * sample.num_sampled for sample in samples]
        correction = None
        if spec.correction is not None and old is not None:
            correction = importance_correction(old, sampler, spec.correction)
            counts = correction.kept
            if not any(map(any, counts)):
                lr = None  # an optimizer would go on by its momentum, and a decay of weights
        shares = token_shares(
            counts,
            aggregation=spec.aggregation,
            constant=spec.aggregation_tokens,
            num_tokens=num_tokens,
            num_samples=num_samples,
        )

        # All of the above is of the whole update, and every rank has it: what follows is shared out.
        mine = self.ranks.share(samples)

        def terms(batch: MicroBatch) -> TokenTerms:
            def gather(values: Sequence[Sequence[float]]) -> Tensor:
                return batch.gather([values[index] for index in mine])

            return TokenTerms(
                old_logprobs=gather(sampler if old is None else old),
                advantages=gather(per_token),
                shares=gather(shares),
                importance=None if correction is None else gather(correction.weights),
                reference_logprobs=None if reference is None else gather(reference),
            )

        loss, totals = 0.0, LossTotals()
        with whole(self.model):
            for batch, scores in self._scored([samples[index] for index in mine], temperature):
                part, part_totals = grpo_loss(
                    scores.logprobs, scores.entropy, terms(batch), batch.token_owners(), spec
                )
                loss += self._backward(part)
                totals.merge(part_totals)
                if not math.isfinite(loss):
                    break
            (loss,) = self.ranks.total(loss)
            totals = _of_all(totals, self.ranks)
            self._sum_gradients(loss)
        count = totals.num_tokens or 1
        return GrpoMetrics(
            loss=loss,
            num_tokens=totals.num_tokens,
            grad_norm=self._update(lr),
            ratio_mean=totals.ratio / count,
            ratio_max=totals.ratio_max,
            clip_low_fraction=totals.clipped_low / count,
            clip_high_fraction=totals.clipped_high / count,
            kl=totals.kl / count,
            entropy=totals.entropy / count,
            max_logprob_gap=totals.logprob_gap_max,
            mismatch=None if correction is None else correction.mismatch,
        )

    def _scored(
        self, samples: Sequence[Sample], temperature: float = 1.0
    ) -> Iterator[tuple[MicroBatch, TokenScores]]:
        budget = self.kernel.max_tokens
        return scored(
            self.model, samples, self.found.way, max_tokens=budget, temperature=temperature
        )

    def _backward(self, loss: Tensor) -> float:
        value = loss.item()
        if math.isfinite(value):
            loss.backward()
        return value

    def _sum_gradients(self, loss: float) -> None:
        """Those of all ranks, if the loss is one to learn from: they all find the same."""
        if not math.isfinite(loss):
            self._refuse(f"the loss is {loss}")
        sum_gradients(self.model, self.optimizer.unsplit)

    def _update(self, lr: float | None) -> float:
        norm = full(
            torch.nn.utils.clip_grad_norm_(self.optimizer.parameters, self._max_grad_norm)
        ).item()
        if not math.isfinite(norm):
            self._refuse(f"the gradient's norm is {norm}")
        if lr is None:
            forget_gradients(self.model)
        else:
            self.optimizer.step(lr)
            self.num_updates += 1
        return norm

    def _refuse(self, what: str) -> None:
        forget_gradients(self.model)
        raise NonFiniteLoss(
            f"update {self.num_updates + 1}: {what}; the weights are still those of update "
            f"{self.num_updates}. Lower the learning rate, or resume from an earlier checkpoint"
        )


def _of_all(totals: LossTotals, ranks: Ranks) -> LossTotals:
    """Sums and extremes over the samples of every rank."""
    tokens, ratio, low, high, kl, entropy = ranks.total(
        totals.num_tokens,
        totals.ratio,
        totals.clipped_low,
        totals.clipped_high,
        totals.kl,
        totals.entropy,
    )
    ratio_max, gap_max = ranks.largest(totals.ratio_max, totals.logprob_gap_max)
    return LossTotals(int(tokens), ratio, ratio_max, int(low), int(high), kl, entropy, gap_max)


def _count(samples: Sequence[Sample]) -> int:
    count = sum(sample.num_sampled for sample in samples)
    if not count:
        raise TrainError("no sample has a sampled token: there is nothing to train on")
    return count


def _per_token(advantage: Advantage | None, sample: Sample) -> list[float]:
    if isinstance(advantage, Sequence):
        if len(advantage) != sample.num_sampled:
            raise TrainError(
                f"{len(advantage)} advantages for {sample.num_sampled} sampled tokens; there must be "
                "one each, or one for all"
            )
        return list(advantage)
    return [advantage or 0.0] * sample.num_sampled


def _chosen(
    who: str,
    samples: Sequence[Sample],
    logprobs: Sequence[Sequence[float]] | None,
    kept: Sequence[int],
) -> Sequence[Sequence[float]] | None:
    return None if logprobs is None else _checked(who, samples, [logprobs[i] for i in kept])


def _checked(
    who: str, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]
) -> Sequence[Sequence[float]]:
    for index, (sample, values) in enumerate(zip(samples, logprobs, strict=True)):
        if len(values) != sample.num_sampled:
            raise TrainError(
                f"sample {index}: {len(values)} {who} log-probs for {sample.num_sampled} sampled "
                "tokens; there must be one each"
            )
    return logprobs
