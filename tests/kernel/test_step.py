"""One update: what it moves, what it must not, and what it reports."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from kernel_kit import (
    distance,
    in_float64,
    random_samples,
    reference_logprobs,
    tiny_model,
)
from torch import Tensor

from muarl.errors import NonFiniteLoss, TrainError
from muarl.kernel.model import weights_checksum
from muarl.kernel.optimizer import adamw
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import Advantage, GrpoMetrics, Trainer
from muarl.record import Sample
from muarl.spec import GrpoSpec
from muarl.spec.grpo import CorrectionSpec
from muarl.spec.kernel import KernelSpec

SPEC = GrpoSpec()


class Recorder:
    """Stands for an optimizer; keeps the gradient and moves nothing."""

    def __init__(self, trainer: Trainer) -> None:
        self._real = trainer.optimizer
        self._model = trainer.model
        self.gradient: dict[str, Tensor] = {}
        trainer.optimizer = self  # type: ignore[assignment]

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return self._real.parameters

    @property
    def unsplit(self) -> set[str]:
        return self._real.unsplit

    def step(self, lr: float) -> None:
        named = self._model.named_parameters()
        self.gradient = {n: p.grad.double() for n, p in named if p.grad is not None}
        self._model.zero_grad(set_to_none=True)


def grpo_gradient(
    samples: Sequence[Sample],
    advantages: Sequence[Advantage | None],
    *,
    max_tokens: int = 4096,
    kernel: KernelSpec | None = None,
    spec: GrpoSpec = SPEC,
    reference_logprobs: Sequence[Sequence[float]] | None = None,
    old_logprobs: Sequence[Sequence[float]] | None = None,
) -> tuple[GrpoMetrics, dict[str, Tensor]]:
    model = tiny_model()
    optimizer = adamw(model, freeze_embeddings=False)
    kernel = kernel or KernelSpec(max_tokens=max_tokens)
    trainer = Trainer(model, optimizer, max_grad_norm=math.inf, kernel=kernel)
    recorder = Recorder(trainer)
    metrics = trainer.grpo_update(
        samples,
        advantages,
        spec=spec,
        lr=1.0,
        reference_logprobs=reference_logprobs,
        old_logprobs=old_logprobs,
    )
    return metrics, recorder.gradient


def nearly_on_policy(count: int, seed: int = 0) -> list[Sample]:
    """Samples whose sampler was a little off, so that some ratios are clipped."""
    samples = random_samples(count, seed=seed)
    rng = random.Random(seed)
    for sample, logprobs in zip(samples, sample_logprobs(tiny_model(), samples), strict=True):
        sample.logprobs = [value + rng.gauss(0, 0.2) for value in logprobs]
    return samples


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_loss_gradient_and_metrics_do_not_depend_on_the_split(parts: int) -> None:
    samples = nearly_on_policy(8)
    advantages = [0.3, -1.2, 1.0, 0.0, -0.5, 2.0, -2.0, 0.7]
    spec = GrpoSpec(kl_coef=0.1)
    reference = [[value - 0.1 for value in s.logprobs] for s in samples]
    longest = max(len(s.token_ids) for s in samples)
    budget = {1: 10_000, 2: 4 * longest, 8: 1}[parts]
    how = {"spec": spec, "reference_logprobs": reference}
    metrics, gradient = grpo_gradient(samples, advantages, max_tokens=budget, **how)  # type: ignore[arg-type]

    # the same in double precision, a sample at a time, by the textbook
    exact = in_float64(tiny_model())
    total = torch.zeros((), dtype=torch.float64)
    count = sum(s.num_sampled for s in samples)
    scores = reference_logprobs(exact, samples)
    for trainer, sample, advantage, ref in zip(scores, samples, advantages, reference, strict=True):
        ratio = (trainer - torch.tensor(sample.logprobs).double()).exp()
        cut = ratio.clamp(1 - SPEC.clip_low, 1 + SPEC.clip_high)
        gap = torch.tensor(ref).double() - trainer
        total = total - torch.minimum(ratio * advantage, cut * advantage).sum()
        total = total + 0.1 * (gap.exp() - gap - 1).sum()
    (total / count).backward()
    expected = {n: p.grad for n, p in exact.named_parameters() if p.grad is not None}
    assert metrics.clip_low_fraction > 0
    assert metrics.clip_high_fraction > 0
    assert metrics.loss == pytest.approx((total / count).item(), rel=1e-5)
    assert distance(gradient, expected) < 2e-6


@pytest.mark.parametrize(
    "pieces",
    [
        {"aggregation": "sequence", "ratio": "sequence", "clip_low": 0.02, "clip_high": 0.03},
        {"aggregation": "constant", "aggregation_tokens": 30, "dual_clip": 1.2},
        {"surrogate": "cispo", "entropy_coef": 0.05, "kl_coef": 0.1, "kl_estimator": "k2"},
        {"correction": {"truncate": 1.1, "reject_above": 1.3, "reject_below": 0.7}},
        {"correction": {"level": "geometric", "reject_above": 1.05}, "aggregation": "sequence"},
    ],
    ids=["gspo", "dr-grpo", "cispo", "tis and mis", "geometric"],
)
def test_no_piece_depends_on_the_split_or_the_order(pieces: dict[str, Any]) -> None:
    spec = GrpoSpec(**pieces)
    samples = nearly_on_policy(8)
    advantages = [0.3, -1.2, 1.0, 0.0, -0.5, 2.0, -2.0, 0.7]
    model = tiny_model()
    old = sample_logprobs(model, samples) if spec.correction else None
    reference = [[value - 0.1 for value in s.logprobs] for s in samples]
    whole = grpo_gradient(
        samples,
        advantages,
        max_tokens=10_000,
        spec=spec,
        reference_logprobs=reference,
        old_logprobs=old,
    )
    order = [4, 0, 5, 2, 7, 1, 3, 6]
    parts = grpo_gradient(
        [samples[i] for i in order],
        [advantages[i] for i in order],
        max_tokens=1,
        spec=spec,
        reference_logprobs=[reference[i] for i in order],
        old_logprobs=None if old is None else [old[i] for i in order],
    )
    assert parts[0].loss == pytest.approx(whole[0].loss, rel=1e-4, abs=1e-6)
    assert distance(parts[1], whole[1]) < 5e-6
    plain = grpo_gradient(samples, advantages, max_tokens=10_000)
    assert distance(whole[1], plain[1]) > 1e-3, "the pieces do nothing"
    if spec.correction:
        mismatch = whole[0].mismatch
        assert mismatch is not None
        assert mismatch.rejected > 0


def test_what_is_rejected_is_as_if_it_had_not_been_sampled() -> None:
    """Law L2's sibling: rejected tokens leave numerator and denominator."""
    samples = nearly_on_policy(4)
    old = sample_logprobs(tiny_model(), samples)
    old[2] = [value + 5.0 for value in old[2]]
    spec = GrpoSpec(correction=CorrectionSpec(level="geometric", truncate=None, reject_above=2.0))
    advantages = [1.0, -1.0, 2.0, 0.5]
    rejected = grpo_gradient(samples, advantages, spec=spec, old_logprobs=old)
    without = grpo_gradient(
        [samples[i] for i in (0, 1, 3)],
        [1.0, -1.0, 0.5],
        spec=spec,
        old_logprobs=[old[i] for i in (0, 1, 3)],
    )
    for figure in ("loss", "num_tokens", "ratio_mean", "ratio_max", "kl", "entropy", "grad_norm"):
        seen, right = getattr(rejected[0], figure), getattr(without[0], figure)
        assert seen == pytest.approx(right, rel=1e-4), figure
    assert distance(rejected[1], without[1]) < 2e-6


def test_an_advantage_for_each_token_is_an_advantage_for_each_token() -> None:
    samples = nearly_on_policy(3)
    flat = grpo_gradient(samples, [1.0, -1.0, 0.5])
    spread = grpo_gradient(
        samples, [[a] * s.num_sampled for a, s in zip((1.0, -1.0, 0.5), samples, strict=True)]
    )
    assert spread[0] == flat[0]
    assert distance(spread[1], flat[1]) == 0
    own = [[1.0, *[0.0] * (s.num_sampled - 1)] for s in samples]
    assert distance(grpo_gradient(samples, own)[1], flat[1]) > 1e-2
    with pytest.raises(TrainError, match="1 advantages for"):
        grpo_gradient([s for s in samples if s.num_sampled > 1][:1], [[1.0]])


def test_a_correction_without_old_log_probs_is_refused() -> None:
    with pytest.raises(TrainError, match="no old log-probs"):
        grpo_gradient(nearly_on_policy(1), [1.0], spec=GrpoSpec(correction=CorrectionSpec()))


def test_order_does_not_matter() -> None:
    samples, advantages = nearly_on_policy(6), [1.0, -1.0, 0.5, -0.5, 2.0, -2.0]
    order = [4, 0, 5, 2, 1, 3]
    _, straight = grpo_gradient(samples, advantages)
    _, shuffled = grpo_gradient([samples[i] for i in order], [advantages[i] for i in order])
    assert distance(shuffled, straight) < 2e-6


def test_equal_rewards_give_no_gradient_at_all() -> None:
    _, gradient = grpo_gradient(nearly_on_policy(4), [0.0] * 4)
    assert all(not g.any() for g in gradient.values())


def test_faults_are_as_if_they_had_not_been() -> None:
    samples = nearly_on_policy(6)
    samples[1].logprobs = []  # what a dead engine leaves
    with_faults = grpo_gradient(samples, [1.0, None, -1.0, None, 0.5, None])
    without = grpo_gradient([samples[0], samples[2], samples[4]], [1.0, -1.0, 0.5])
    assert with_faults[0] == without[0]
    assert distance(with_faults[1], without[1]) == 0


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.3])
def test_on_policy_the_first_ratio_is_one_at_any_temperature(temperature: float) -> None:
    model, samples = tiny_model(), random_samples(6)
    scores = reference_logprobs(model, samples, temperature)
    for sample, logprobs in zip(samples, scores, strict=True):
        sample.logprobs = logprobs.tolist()
    trainer = Trainer.for_grpo(model, SPEC)
    metrics = trainer.grpo_update(
        samples, [1.0, -1.0] * 3, spec=SPEC, lr=1e-3, temperature=temperature
    )
    assert metrics.ratio_mean == pytest.approx(1, abs=1e-5)
    assert metrics.ratio_max == pytest.approx(1, abs=1e-4)
    assert metrics.max_logprob_gap < 1e-4
    assert metrics.clip_low_fraction == metrics.clip_high_fraction == 0


def test_the_denominator_can_span_more_than_these_samples() -> None:
    samples, advantages = nearly_on_policy(2), [1.0, -1.0]
    count = sum(s.num_sampled for s in samples)
    model = tiny_model()
    trainer = Trainer.for_grpo(model, SPEC)
    own = trainer.grpo_update(samples, advantages, spec=SPEC, lr=0.0)
    half = trainer.grpo_update(samples, advantages, spec=SPEC, lr=0.0, num_tokens=2 * count)
    assert half.loss == pytest.approx(own.loss / 2)
    assert half.grad_norm == pytest.approx(own.grad_norm / 2, rel=1e-5)


def test_grpo_makes_the_better_sample_likelier_and_the_worse_less_likely() -> None:
    model, samples = tiny_model(), random_samples(2)
    before = sample_logprobs(model, samples)
    for sample, logprobs in zip(samples, before, strict=True):
        sample.logprobs = logprobs
    trainer = Trainer.for_grpo(model, SPEC)
    for _ in range(3):
        trainer.grpo_update(samples, [1.0, -1.0], spec=SPEC, lr=1e-3)
    after = sample_logprobs(model, samples)
    assert sum(after[0]) > sum(before[0])
    assert sum(after[1]) < sum(before[1])
    assert trainer.num_updates == 3


def test_frozen_embeddings_stay_and_the_cold_start_moves_them_again() -> None:
    model, samples = tiny_model(), nearly_on_policy(2)
    embeddings = model.get_input_embeddings().weight
    before = embeddings.clone()
    Trainer.for_grpo(model, SPEC).grpo_update(samples, [1.0, -1.0], spec=SPEC, lr=0.1)
    assert torch.equal(embeddings, before)
    Trainer.for_cold_start(model).sft_step(samples, 0.1)
    assert not torch.equal(embeddings, before)
    after = embeddings.clone()
    spec = GrpoSpec(freeze_embeddings=False)
    Trainer.for_grpo(model, spec).grpo_update(samples, [1.0, -1.0], spec=spec, lr=0.1)
    assert not torch.equal(embeddings, after)


def test_supervised_steps_learn_and_report_the_loss_before_them() -> None:
    model, samples = tiny_model(), random_samples(4)
    trainer = Trainer.for_cold_start(model)
    before = sample_logprobs(model, samples)
    metrics = [trainer.sft_step(samples, 0.01) for _ in range(30)]
    count = sum(s.num_sampled for s in samples)
    assert metrics[0].num_tokens == count
    assert metrics[0].loss == pytest.approx(-sum(map(sum, before)) / count, rel=1e-5)
    assert metrics[-1].loss < 0.3 * metrics[0].loss


def test_gradients_are_clipped_to_the_norm() -> None:
    model, samples = tiny_model(), random_samples(4)
    trainer = Trainer(model, adamw(model, freeze_embeddings=False), max_grad_norm=0.01)
    recorder = Recorder(trainer)
    assert trainer.sft_step(samples, 1.0).grad_norm > 0.1
    norm = torch.stack([g.norm() for g in recorder.gradient.values()]).norm()
    assert norm.item() == pytest.approx(0.01, rel=1e-3)


def test_a_loss_that_is_not_finite_names_the_update_and_moves_nothing() -> None:
    model, samples = tiny_model(), nearly_on_policy(3)
    trainer = Trainer.for_grpo(model, SPEC)
    trainer.grpo_update(samples, [1.0, -1.0, 0.0], spec=SPEC, lr=1e-3)
    before, state = weights_checksum(model), trainer.optimizer.state()
    state = {name: value.clone() for name, value in state.items()}
    with pytest.raises(NonFiniteLoss, match="update 2: the loss is nan"):
        trainer.grpo_update(samples, [1.0, math.nan, 0.0], spec=SPEC, lr=1e-3)
    assert weights_checksum(model) == before
    assert all(torch.equal(value, state[n]) for n, value in trainer.optimizer.state().items())
    assert all(p.grad is None for p in model.parameters())


def test_a_gradient_that_is_not_finite_is_refused_too() -> None:
    model, samples = tiny_model(), random_samples(2)
    trainer = Trainer.for_cold_start(model)
    norm = model.base_model.norm.weight
    norm.register_hook(lambda gradient: gradient * math.inf)
    before = weights_checksum(model)
    with pytest.raises(NonFiniteLoss, match="update 1: the gradient's norm is"):
        trainer.sft_step(samples, 0.01)
    assert weights_checksum(model) == before


def test_missing_log_probs_are_named() -> None:
    samples = nearly_on_policy(3)
    trainer = Trainer.for_grpo(tiny_model(), SPEC)
    short = [s.logprobs for s in samples]
    short[2] = short[2][:-1]
    with pytest.raises(TrainError, match=r"sample 2: \d+ reference log-probs"):
        trainer.grpo_update(samples, [1.0] * 3, spec=SPEC, lr=0.1, reference_logprobs=short)
    samples[1].logprobs = []
    with pytest.raises(TrainError, match="sample 1: 0 sampler log-probs"):
        trainer.grpo_update(samples, [1.0] * 3, spec=SPEC, lr=0.1)


def test_a_divergence_without_a_reference_is_refused() -> None:
    trainer = Trainer.for_grpo(tiny_model(), SPEC)
    with pytest.raises(TrainError, match="reference"):
        trainer.grpo_update(nearly_on_policy(1), [1.0], spec=GrpoSpec(kl_coef=0.1), lr=0.1)


def test_nothing_to_train_on_is_an_error_and_not_a_zero() -> None:
    trainer = Trainer.for_cold_start(tiny_model())
    with pytest.raises(TrainError, match="nothing to train"):
        trainer.sft_step([Sample([1, 2, 3])], 0.1)
    with pytest.raises(TrainError, match="nothing to train"):
        trainer.grpo_update(nearly_on_policy(1), [None], spec=SPEC, lr=0.1)
