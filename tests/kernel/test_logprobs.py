"""Law L6 at its root: log-probs and gradients, however the samples are cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_kit import (
    VOCAB,
    distance,
    gradients,
    in_float64,
    random_samples,
    reference_logprobs,
    sample_lists,
    tiny_model,
)
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.kernel import logprobs
from muarl.kernel.batch import make_micro_batches
from muarl.kernel.logprobs import can_share_prefix, check_scores, score_tokens
from muarl.kernel.step import sample_logprobs
from muarl.record import Sample, Span


def weights_of(samples: Sequence[Sample]) -> list[list[float]]:
    """A different factor for every token, so that no two can be exchanged unnoticed."""
    rng = random.Random(5)
    return [[rng.uniform(-1, 1) for _ in range(sample.num_sampled)] for sample in samples]


def weighted(
    model: PreTrainedModel, samples: Sequence[Sample], temperature: float = 1.0, **how: Any
) -> Tensor:
    factors = weights_of(samples)
    total = torch.zeros(())
    for batch in make_micro_batches(samples, **how):
        scores = score_tokens(model, batch, temperature=temperature)
        total = total + (scores.logprobs * batch.gather(factors)).sum()
    return total


def reference(
    model: PreTrainedModel, samples: Sequence[Sample], temperature: float = 1.0
) -> Callable[[], Tensor]:
    def compute() -> Tensor:
        found = torch.cat(reference_logprobs(model, samples, temperature))
        factors = [factor for row in weights_of(samples) for factor in row]
        return (found * torch.tensor(factors).to(found)).sum()

    return compute


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
    how = {"max_tokens": max_tokens, "share_prefix": share_prefix}
    ours = gradients(model, lambda: weighted(model, samples, 0.8, **how))
    assert distance(ours, gradients(exact, reference(exact, samples, 0.8))) < 2e-6


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
    parts = sample_logprobs(model, [samples[i] for i in order], max_tokens=max_tokens)
    for place, index in enumerate(order):
        assert parts[place] == pytest.approx(whole[index], abs=2e-5)


def test_what_follows_the_last_sampled_token_changes_nothing() -> None:
    model, samples = tiny_model(), random_samples(4)
    longer = [Sample([*s.token_ids, 9, 9, 9], s.spans) for s in samples]
    assert sample_logprobs(model, samples) == sample_logprobs(model, longer)


def test_entropy_is_the_distribution_s_own() -> None:
    model, samples = tiny_model(), random_samples(1)
    (batch,) = make_micro_batches(samples)
    scores = score_tokens(model, batch, temperature=0.7)
    logits = in_float64(model)(torch.tensor([samples[0].token_ids])).logits[0] / 0.7
    places = [i for i, sampled in enumerate(samples[0].loss_mask()) if sampled]
    expected = torch.distributions.Categorical(logits=logits[[i - 1 for i in places]]).entropy()
    assert scores.entropy.detach().double() == pytest.approx(expected.detach(), abs=1e-5)


def test_the_gradient_of_the_entropy_is_that_of_a_full_forward() -> None:
    model, samples = tiny_model(), random_samples(5)
    exact = in_float64(model)
    rng = random.Random(4)
    weights = [[rng.gauss(0, 1) for _ in range(s.num_sampled)] for s in samples]

    def ours() -> Tensor:
        total = torch.zeros(())
        for batch in make_micro_batches(samples, max_tokens=40):
            scores = score_tokens(model, batch, temperature=0.8)
            both = scores.entropy - 0.3 * scores.logprobs
            total = total + (batch.gather(weights) * both).sum()
        return total

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

    assert distance(gradients(model, ours), gradients(exact, theirs)) < 2e-6


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
    whole = gradients(model, lambda: weighted(model, samples))
    monkeypatch.setattr(logprobs, "ROWS_PER_CHUNK", 5)
    with LargestLogits() as seen:
        chunked = gradients(model, lambda: weighted(model, samples))
    hidden = model.config.hidden_size  # transposed weights are [hidden, vocabulary]
    assert sum(s.num_sampled for s in samples) > 2 * hidden
    assert seen.rows <= max(5, hidden)
    assert distance(chunked, whole) < 1e-6


def test_frozen_embeddings_get_no_gradient_and_change_no_other() -> None:
    model, samples = tiny_model(), random_samples(4)
    free = gradients(model, lambda: weighted(model, samples))
    model.get_input_embeddings().weight.requires_grad_(False)
    frozen = gradients(model, lambda: weighted(model, samples))
    assert free.keys() - frozen.keys() == {"model.embed_tokens.weight"}
    assert distance(frozen, {name: free[name] for name in frozen}) < 1e-6


def other_model(name: str, **settings: Any) -> PreTrainedModel:
    shape = {
        "vocab_size": VOCAB,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 24,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    config = getattr(transformers, f"{name}Config")(**(shape | settings))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return model


EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("Llama", {"tie_word_embeddings": False}),
        ("GPTNeoX", {}),
        ("GPT2", {}),
        ("Qwen3Moe", EXPERTS),
        ("Mistral", {"sliding_window": 4}),
        ("GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8}),
    ],
)
def test_other_architectures_are_scored_exactly_too(name: str, config: dict[str, Any]) -> None:
    model, samples = other_model(name, **config), random_samples(4)
    share = can_share_prefix(model)
    assert share == (name not in ("Mistral", "GptOss"))  # those have sliding windows
    check_scores(model)
    ours = gradients(model, lambda: weighted(model, samples, share_prefix=share))
    theirs = gradients(model, reference(model, samples))
    assert distance(ours, theirs) < 5e-6


def gpt_neo(window: int) -> PreTrainedModel:
    """Every second layer sees only so many tokens back, counted in places of the row."""
    config = transformers.GPTNeoConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=window,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    return model


@pytest.mark.parametrize("window", [4, 256])
def test_a_window_that_counts_places_in_the_row_is_scored_exactly_too_L6(window: int) -> None:
    model, rng = gpt_neo(window), random.Random(0)
    base = [rng.randrange(64) for _ in range(200)]
    rows = [base + [rng.randrange(64) for _ in range(n)] for n in (200, 50, 50, 40, 40)]
    samples = [Sample(ids, [Span(201, len(ids), 0)]) for ids in rows]
    check_scores(model)
    together, alone = (sample_logprobs(model, samples, max_tokens=n) for n in (4096, 1))
    for ours, theirs in zip(together, alone, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("hidden", ["window", "slope"])
def test_a_model_that_is_right_alone_and_wrong_in_a_row_is_given_rows_of_its_own_L6(
    hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check itself has a packed row: it sees what no config speaks of."""
    if hidden == "window":
        model = gpt_neo(window=8)
        monkeypatch.setattr(logprobs, "_has_window", lambda _config: False)
    else:
        model = other_model("Bloom", n_layer=2, n_head=4)
    assert not can_share_prefix(model)
    check_scores(model)
    samples = random_samples(4)
    for ours, theirs in zip(
        sample_logprobs(model, samples), reference_logprobs(model, samples), strict=True
    ):
        assert ours == pytest.approx(theirs.tolist(), abs=1e-4)


def test_a_model_that_cannot_be_run_on_a_few_tokens_is_refused() -> None:
    model = other_model("GPT2", n_positions=8)
    with pytest.raises(SetupError, match="GPT2LMHeadModel cannot be trained here: scoring"):
        check_scores(model)


@pytest.mark.parametrize(
    ("name", "config"), [("Granite", {"logits_scaling": 4.0}), ("Gemma2", {"head_dim": 8})]
)
def test_models_that_change_their_logits_afterwards_are_refused(
    name: str, config: dict[str, Any]
) -> None:
    with pytest.raises(SetupError, match=f"{name}ForCausalLM cannot be trained here"):
        check_scores(other_model(name, **config))
