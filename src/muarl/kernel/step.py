"""One optimizer update, supervised or GRPO."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor
from transformers import PreTrainedModel

from muarl.errors import NonFiniteLoss, TrainError
from muarl.kernel.batch import MicroBatch, make_micro_batches
from muarl.kernel.logprobs import can_share_prefix, check_scores, score_tokens
from muarl.kernel.loss import LossTotals, grpo_loss, sft_loss
from muarl.kernel.optimizer import Optimizer, adamw, muon
from muarl.record.sample import Sample
from muarl.spec.run import GrpoSpec


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
    """What a GRPO update saw. Means are over the sampled tokens of the samples it ran.

    Attributes:
        loss: Before the update.
        num_tokens: Sampled tokens.
        grad_norm: Before clipping.
        ratio_mean: Of trainer to sampler probability.
        ratio_max: Largest ratio.
        clip_low_fraction: Tokens whose ratio was too low to earn gradient.
        clip_high_fraction: Tokens whose ratio was too high to earn gradient.
        kl: k3 against the reference; 0 without one.
        entropy: On sampled tokens only.
        max_logprob_gap: Largest |trainer - sampler| log-prob; the sampler's error where the weights
            are the ones that sampled.
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


class Trainer:
    """Moves a model's weights, in place; whoever shares the model sees the new ones at once.

    Attributes:
        model: The model.
        optimizer: Its optimizer.
        num_updates: Updates made so far.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        optimizer: Optimizer,
        *,
        max_grad_norm: float = 1.0,
        max_tokens: int = 4096,
    ) -> None:
        check_scores(model.eval())  # dropout would make the ratio wrong
        self.model = model
        self.optimizer = optimizer
        self.num_updates = 0
        self._max_grad_norm = max_grad_norm
        self._max_tokens = max_tokens

    @classmethod
    def for_cold_start(cls, model: PreTrainedModel) -> Trainer:
        """Muon, all parameters."""
        return cls(model, muon(model))

    @classmethod
    def for_grpo(cls, model: PreTrainedModel, spec: GrpoSpec) -> Trainer:
        """AdamW, embeddings frozen if the spec says so."""
        optimizer = adamw(model, freeze_embeddings=spec.freeze_embeddings)
        return cls(model, optimizer, max_grad_norm=spec.max_grad_norm)

    def sft_step(self, samples: Sequence[Sample], lr: float) -> SftMetrics:
        """Make the marked tokens of samples more likely.

        Raises:
            TrainError: No sample has a marked token.
            NonFiniteLoss: The loss or the gradient is not finite; weights are as before.
        """
        num_tokens = _count(samples)
        loss, entropy = 0.0, 0.0
        for batch in _micro_batches(self.model, samples, self._max_tokens):
            scores = score_tokens(self.model, batch)
            loss += self._backward(sft_loss(scores.logprobs, num_tokens=num_tokens))
            entropy += scores.entropy.sum().item()
        return SftMetrics(
            loss=loss,
            num_tokens=num_tokens,
            grad_norm=self._update(lr),
            entropy=entropy / num_tokens,
        )

    def grpo_update(
        self,
        samples: Sequence[Sample],
        advantages: Sequence[float | None],
        *,
        spec: GrpoSpec,
        lr: float,
        temperature: float = 1.0,
        reference_logprobs: Sequence[Sequence[float]] | None = None,
        num_tokens: int | None = None,
    ) -> GrpoMetrics:
        """Move the policy toward samples of positive advantage.

        Args:
            samples: With the sampler's log-probs.
            advantages: One per sample; None (a fault) leaves the sample out altogether.
            spec: Clips and the weight of the divergence.
            lr: Learning rate.
            temperature: The sampler's.
            reference_logprobs: Like the samples' log-probs, under the reference policy.
            num_tokens: Denominator of the loss; the sampled tokens of these samples if None.

        Raises:
            TrainError: Nothing to train, log-probs missing, or no reference though its weight is
                not 0.
            NonFiniteLoss: The loss or the gradient is not finite; weights are as before.
        """
        if spec.kl_coef and reference_logprobs is None:
            raise TrainError("kl_coef is not 0, but no reference log-probs were given")
        kept = [i for i, advantage in enumerate(advantages) if advantage is not None]
        samples = [samples[i] for i in kept]
        values = [advantage for advantage in advantages if advantage is not None]
        sampler = [sample.logprobs for sample in samples]
        reference = None
        if reference_logprobs is not None:
            reference = [reference_logprobs[i] for i in kept]
            _check_logprobs("reference", samples, reference)
        _check_logprobs("sampler", samples, sampler)

        denominator = num_tokens or _count(samples)
        loss, totals = 0.0, LossTotals()
        for batch in _micro_batches(self.model, samples, self._max_tokens):
            scores = score_tokens(self.model, batch, temperature=temperature)
            part, part_totals = grpo_loss(
                scores.logprobs,
                batch.gather(sampler),
                batch.spread(values),
                scores.entropy,
                num_tokens=denominator,
                clip_low=spec.clip_low,
                clip_high=spec.clip_high,
                kl_coef=spec.kl_coef,
                reference_logprobs=None if reference is None else batch.gather(reference),
            )
            loss += self._backward(part)
            totals.merge(part_totals)
        count = totals.num_tokens
        return GrpoMetrics(
            loss=loss,
            num_tokens=count,
            grad_norm=self._update(lr),
            ratio_mean=totals.ratio / count,
            ratio_max=totals.ratio_max,
            clip_low_fraction=totals.clipped_low / count,
            clip_high_fraction=totals.clipped_high / count,
            kl=totals.kl / count,
            entropy=totals.entropy / count,
            max_logprob_gap=totals.logprob_gap_max,
        )

    def _backward(self, loss: Tensor) -> float:
        value = loss.item()
        if not torch.isfinite(loss):
            self._refuse(f"the loss is {value}")
        loss.backward()
        return value

    def _update(self, lr: float) -> float:
        norm = torch.nn.utils.clip_grad_norm_(self.optimizer.parameters, self._max_grad_norm)
        if not torch.isfinite(norm):
            self._refuse(f"the gradient's norm is {norm.item()}")
        self.optimizer.step(lr)
        self.num_updates += 1
        return norm.item()

    def _refuse(self, what: str) -> None:
        self.model.zero_grad(set_to_none=True)
        raise NonFiniteLoss(
            f"update {self.num_updates + 1}: {what}; the weights are still those of update "
            f"{self.num_updates}. Lower the learning rate, or resume from an earlier checkpoint"
        )


def _micro_batches(
    model: PreTrainedModel, samples: Sequence[Sample], max_tokens: int
) -> list[MicroBatch]:
    return make_micro_batches(
        samples,
        max_tokens=max_tokens,
        share_prefix=can_share_prefix(model),
        device=model.device,
    )


def sample_logprobs(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    *,
    temperature: float = 1.0,
    max_tokens: int = 8192,
) -> list[list[float]]:
    """Log-probs of every sample's sampled tokens under a model, laid out like `Sample.logprobs`."""
    result: list[list[float]] = [[] for _ in samples]
    with torch.no_grad():
        for batch in _micro_batches(model, samples, max_tokens):
            scores = score_tokens(model, batch, temperature=temperature)
            rows = scores.logprobs.split(list(batch.counts))
            for index, row in zip(batch.samples, rows, strict=True):
                result[index] = row.tolist()
    return result


def _count(samples: Sequence[Sample]) -> int:
    count = sum(sample.num_sampled for sample in samples)
    if not count:
        raise TrainError("no sample has a sampled token: there is nothing to train on")
    return count


def _check_logprobs(
    who: str, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]
) -> None:
    for index, (sample, values) in enumerate(zip(samples, logprobs, strict=True)):
        if len(values) != sample.num_sampled:
            raise TrainError(
                f"sample {index}: {len(values)} {who} log-probs for {sample.num_sampled} sampled "
                "tokens; there must be one each"
            )
