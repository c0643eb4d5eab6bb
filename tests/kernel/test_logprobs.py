"""Law L6 at its root: log-probs and gradients, however the samples are cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_kit import (
    TINY,
    VOCAB,
    distance,
    gradients,
    in_float64,
    random_samples,
    reference_gradient,
    reference_logprobs,
    sample_lists,
    scored_gradient,
    tiny_model,
    weighted_gradient,
)
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from muarl.kernel import logprobs
from muarl.kernel.backbone import Way
from muarl.kernel.batch import MicroBatch, make_micro_batches
from muarl.kernel.logprobs import TokenScores, scored
from muarl.kernel.model import build_tiny_model
from muarl.kernel.scoring import sample_logprobs
from muarl.record import Sample
from muarl.spec.kernel import KernelSpec

WAY = Way("sdpa", "full")


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.3])
def test_logprobs_are_those_of_a_full_forward_at_any_temperature(temperature: float) -> None:
    model, samples = tiny_model(), random_samples(7)
    exact = reference_logprobs(in_float64(model), samples, temperature)
    found = sample_logprobs(model, samples, temperature=temperature)
    for ours, theirs in zip(found, exact, strict=True):
        assert ours == pytest.approx(theirs.tolist(), abs=2e-5)


def test_greedy_logprobs_are_those_at_temperature_one() -> None:
    model, samples = tiny_model(), random_samples(3)
    assert sample_logprobs(model, samples, temperature=0.0) == sample_logprobs(model, samples)


@pytest.mark.parametrize("share_prefix", [True, False])
@pytest.mark.parametrize("max_tokens", [1, 60, 10_000])
def test_the_gradient_is_that_of_a_full_forward(max_tokens: int, share_prefix: bool) -> None:
    model, samples = tiny_model(), random_samples(8)
    samples.append(samples[3])  # twins: one row of the prefix predicts for both
    exact = in_float64(model)
    way = Way("sdpa", "full" if share_prefix else None)
    ours = weighted_gradient(model, samples, way, max_tokens=max_tokens, temperature=0.8)
    assert distance(ours, reference_gradient(exact, samples, 0.8)) < 2e-6


@settings(max_examples=25, deadline=None)
@given(sample_lists(), st.integers(1, 40), st.randoms(use_true_random=False))
def test_cutting_and_order_change_nothing(
    samples: list[Sample], max_tokens: int, rng: random.Random
) -> None:
    if not any(sample.spans for sample in samples):
        return
    model = tiny_model()
    whole = sample_logprobs(model, samples)
    order = rng.sample(range(len(samples)), len(samples))
    parts = sample_logprobs(
        model, [samples[i] for i in order], kernel=KernelSpec(max_tokens=max_tokens)
    )
    for place, index in enumerate(order):
        assert parts[place] == pytest.approx(whole[index], abs=2e-5)


def test_what_follows_the_last_sampled_token_changes_nothing() -> None:
    model, samples = tiny_model(), random_samples(4)
    longer = [Sample([*s.token_ids, 9, 9, 9], s.spans) for s in samples]
    assert sample_logprobs(model, samples) == sample_logprobs(model, longer)


def test_entropy_is_the_distribution_s_own() -> None:
    model, samples = tiny_model(), random_samples(1)
    ((_, scores),) = scored(model, samples, WAY, temperature=0.7)
    logits = in_float64(model)(torch.tensor([samples[0].token_ids])).logits[0] / 0.7
    places = [i for i, sampled in enumerate(samples[0].loss_mask()) if sampled]
    expected = torch.distributions.Categorical(logits=logits[[i - 1 for i in places]]).entropy()
    assert scores.entropy.detach().double() == pytest.approx(expected.detach(), abs=1e-5)


def test_the_gradient_of_the_entropy_is_that_of_a_full_forward() -> None:
    model, samples = tiny_model(), random_samples(5)
    exact = in_float64(model)
    rng = random.Random(4)
    weights = [[rng.gauss(0, 1) for _ in range(s.num_sampled)] for s in samples]

    def loss(batch: MicroBatch, scores: TokenScores) -> Tensor:
        return (batch.gather(weights) * (scores.entropy - 0.3 * scores.logprobs)).sum()

    def theirs() -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for sample, row in zip(samples, weights, strict=True):
            logits = exact(torch.tensor([sample.token_ids])).logits[0] / 0.8
            logs = logits.log_softmax(-1)
            places = [i for i, sampled in enumerate(sample.loss_mask()) if sampled]
            for place, weight in zip(places, row, strict=True):
                before = logs[place - 1]
                entropy = -(before.exp() * before).sum()
                total = total + weight * (entropy - 0.3 * before[sample.token_ids[place]])
        return total

    ours = scored_gradient(model, samples, WAY, loss, max_tokens=40, temperature=0.8)
    assert distance(ours, gradients(exact, theirs)) < 2e-6


class LargestLogits(TorchDispatchMode):
    """Notes the most rows any tensor as wide as the vocabulary had."""

    rows = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.ndim and result.shape[-1] == VOCAB:
            self.rows = max(self.rows, result.numel() // VOCAB)
        return result


def test_logits_never_outlive_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    model, samples = tiny_model(), random_samples(12)
    whole = weighted_gradient(model, samples, WAY)
    monkeypatch.setattr(logprobs, "ROWS_PER_CHUNK", 5)
    with LargestLogits() as seen:
        chunked = weighted_gradient(model, samples, WAY)
    hidden = model.config.hidden_size  # transposed weights are [hidden, vocabulary]
    assert sum(s.num_sampled for s in samples) > 2 * hidden
    assert seen.rows <= max(5, hidden)
    assert distance(chunked, whole) < 1e-6


def test_frozen_embeddings_get_no_gradient_and_change_no_other() -> None:
    model, samples = tiny_model(), random_samples(4)
    free = weighted_gradient(model, samples, WAY)
    model.get_input_embeddings().weight.requires_grad_(False)
    frozen = weighted_gradient(model, samples, WAY)
    assert free.keys() - frozen.keys() == {"model.embed_tokens.weight"}
    assert distance(frozen, {name: free[name] for name in frozen}) < 1e-6


def test_a_group_s_prefix_is_computed_once_however_the_group_is_cut() -> None:
    model, samples = tiny_model(), random_samples(8, prefix=40)
    batches = make_micro_batches(samples, max_tokens=30)
    assert len(batches) > 2
    seen: list[int] = []
    handle = model.get_input_embeddings().register_forward_hook(
        lambda _module, args, _output: seen.append(args[0].numel())
    )
    weighted_gradient(model, samples, WAY, max_tokens=30)
    handle.remove()
    assert sum(seen) == len(batches[0].prefix_ids) + sum(b.suffix_ids.numel() for b in batches)


def test_recomputation_keeps_a_fraction_and_gives_the_same() -> None:
    deep = TINY.model_copy(update={"num_layers": 8})
    model, samples = build_tiny_model(deep, seed=0), random_samples(8, prefix=40)

    def kept_bytes(way: Way) -> tuple[int, dict[str, Tensor]]:
        kept: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            found = weighted_gradient(model, samples, way)
        return sum(kept.values()), found

    plain, expected = kept_bytes(WAY)
    again, found = kept_bytes(Way("sdpa", "full", checkpointing=True))
    assert again < 0.5 * plain
    assert distance(found, expected) < 1e-6
