"""Law L6 on other architectures: how each is run, and that it is right so."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_kit import (
    MODELS,
    VOCAB,
    distance,
    in_float64,
    other_model,
    random_samples,
    reference_gradient,
    reference_logprobs,
    sample_lists,
    weighted_gradient,
)
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.kernel import logprobs, ways
from muarl.kernel.attention import block_mask, sees
from muarl.kernel.batch import make_micro_batches
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.ways import way_for
from muarl.record import Sample, Span
from muarl.spec.kernel import KernelSpec

ALONE = KernelSpec(max_tokens=1)


@pytest.mark.parametrize("name", MODELS)
def test_prefix_rows_chunks_and_recomputation_at_once_change_nothing_L6(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, samples = other_model(name, **MODELS[name]), random_samples(7)
    monkeypatch.setattr(logprobs, "ROWS_PER_CHUNK", 5)
    way = way_for(model, KernelSpec(checkpointing=True)).way
    assert way.masks is not None, "it shares neither prefixes nor rows"
    batches = make_micro_batches(samples, max_tokens=60)
    assert len(batches) > 1
    assert any(batch.is_packed for batch in batches)
    assert all(len(batch.prefix_ids) >= 12 for batch in batches)
    ours = weighted_gradient(model, samples, way, max_tokens=60, temperature=0.8)
    # Experts' grouped products know no float64.
    exact = model if name in ("Qwen3Moe", "GptOss") else in_float64(model)
    assert distance(ours, reference_gradient(exact, samples, 0.8)) < 5e-6


@settings(max_examples=20, deadline=None)
@given(sample_lists(), st.integers(1, 40), st.booleans(), st.sampled_from(["Gemma3Text", "Qwen3"]))
def test_no_split_and_no_sharing_changes_the_gradient_L6(
    samples: list[Sample], max_tokens: int, checkpointing: bool, name: str
) -> None:
    if not any(sample.spans for sample in samples):
        return
    model = other_model(name, **MODELS[name])
    way = way_for(model, KernelSpec(checkpointing=checkpointing)).way
    ours = weighted_gradient(model, samples, way, max_tokens=max_tokens)
    assert distance(ours, reference_gradient(in_float64(model), samples)) < 1e-5


def rotated(model: str, **rope: Any) -> PreTrainedModel:
    """Its rotary places are others beyond 40 tokens."""
    shape: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = getattr(transformers, f"{model}Config")(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=48,
        max_position_embeddings=80,
        pad_token_id=0,
        rope_parameters={"rope_theta": 10_000.0, **rope},
        **shape,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made: PreTrainedModel = getattr(transformers, f"{model}ForCausalLM")(config).eval()
    return made


@pytest.mark.parametrize("max_tokens", [8, 4096])
def test_where_length_turns_places_no_sample_turns_anothers_L6(max_tokens: int) -> None:
    turns = {"short_factor": [1.0] * 4, "long_factor": [8.0] * 4}
    model = rotated("Phi3", rope_type="longrope", original_max_position_embeddings=40, **turns)
    rng = random.Random(0)
    head = [rng.randrange(VOCAB) for _ in range(33)]
    samples = [
        Sample([*head, *(rng.randrange(VOCAB) for _ in range(more))], [Span(33, 33 + more, 0)])
        for more in (4, 30, 3)
    ]
    ours = sample_logprobs(model, samples, kernel=KernelSpec(max_tokens=max_tokens))
    assert "one sample at a time" in str(way_for(model))
    for found, own in zip(ours, reference_logprobs(model, samples), strict=True):
        assert torch.allclose(torch.tensor(found), own.float(), atol=1e-5)


def test_places_that_turn_with_what_was_seen_before_are_refused() -> None:
    with pytest.raises(SetupError, match=r"rope_type: dynamic.*such as yarn"):
        way_for(rotated("Llama", rope_type="dynamic", factor=2.0))


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


@pytest.mark.parametrize("make", [lambda: gpt_neo(4), lambda: gpt_neo(256)], ids=["4", "256"])
def test_a_window_that_counts_places_in_the_row_is_scored_exactly_too_L6(make: Any) -> None:
    model, rng = make(), random.Random(0)
    assert way_for(model).way.masks is None
    base = [rng.randrange(64) for _ in range(200)]
    rows = [base + [rng.randrange(64) for _ in range(n)] for n in (200, 50, 50, 40, 40)]
    samples = [Sample(ids, [Span(201, len(ids), 0)]) for ids in rows]
    together, alone = sample_logprobs(model, samples), sample_logprobs(model, samples, kernel=ALONE)
    for ours, theirs in zip(together, alone, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_window_longer_than_a_probe_is_kept_across_a_long_prefix_L6() -> None:
    """Too long to show on a few tokens: the probe narrows it, and it is put back."""
    model = other_model("Gemma3Text", **MODELS["Gemma3Text"] | {"sliding_window": 100})
    rng = random.Random(0)
    base = [rng.randrange(VOCAB) for _ in range(150)]
    rows = [base + [rng.randrange(VOCAB) for _ in range(n)] for n in (120, 50, 50, 9)]
    samples = [Sample(ids, [Span(151, len(ids), 0)]) for ids in rows]
    found = way_for(model)
    assert found.way.masks == "by_layer"
    assert model.config.sliding_window == 100
    ours = sample_logprobs(model, samples)
    for mine, theirs in zip(ours, reference_logprobs(model, samples), strict=True):
        assert mine == pytest.approx(theirs.tolist(), abs=1e-4)


@pytest.mark.parametrize("hidden", ["window", "slope"])
def test_a_model_that_is_right_alone_and_wrong_in_a_row_is_given_rows_of_its_own_L6(
    hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe itself has a packed row: it sees what no config speaks of."""
    if hidden == "window":
        model = gpt_neo(window=8)
        monkeypatch.setattr(ways, "_has_unknown_window", lambda _config: False)
    else:
        model = other_model("Bloom", n_layer=2, n_head=4)
    found = way_for(model)
    assert found.way.masks is None
    assert "a row for each sample" in str(found)
    samples = random_samples(4)
    for ours, theirs in zip(
        sample_logprobs(model, samples), reference_logprobs(model, samples), strict=True
    ):
        assert ours == pytest.approx(theirs.tolist(), abs=1e-4)


def test_a_model_that_cannot_be_run_on_a_few_tokens_is_refused() -> None:
    model = other_model("GPT2", n_positions=8)
    with pytest.raises(SetupError, match="GPT2LMHeadModel cannot be trained here: scoring"):
        way_for(model)


def test_a_model_that_mixes_tokens_after_its_body_is_refused() -> None:
    """What its output layer does depends on more than the hidden state of one token."""
    model = other_model("Llama")
    plain = model.forward

    def mixed(*args: Any, **kwargs: Any) -> Any:
        output = plain(*args, **kwargs)
        output.logits = output.logits + output.logits.mean(1, keepdim=True)
        return output

    model.forward = mixed
    with pytest.raises(SetupError, match="LlamaForCausalLM cannot be trained here: the log-probs"):
        way_for(model)


def test_capped_scores_choose_the_path_that_caps_them_and_refuse_the_one_that_cannot() -> None:
    model = other_model("Gemma2", **MODELS["Gemma2"])
    assert str(way_for(model)) == (
        "attention: eager (caps its attention scores); samples share prefixes and rows; fp32"
    )
    with pytest.raises(SetupError, match=r"kernel\.attention: sdpa cannot cap attention scores"):
        way_for(model, KernelSpec(attention="sdpa"))


def test_the_paths_give_the_same() -> None:
    model, samples = other_model("Mistral", **MODELS["Mistral"]), random_samples(6)
    eager, sdpa = (
        weighted_gradient(model, samples, way_for(model, KernelSpec(attention=path)).way)
        for path in ("eager", "sdpa")
    )
    assert distance(eager, sdpa) < 2e-6


@settings(max_examples=30, deadline=None)
@given(sample_lists(), st.none() | st.integers(1, 5))
def test_flex_attention_is_told_what_the_others_are_told(
    samples: list[Sample], window: int | None
) -> None:
    for batch in make_micro_batches(samples):
        mask = block_mask(batch, window)
        rows, width, keys = (torch.arange(n) for n in sees(batch, window).shape)
        flat = mask.mask_mod(
            rows[:, None, None], torch.zeros(()), width[None, :, None], keys[None, None]
        )
        assert torch.equal(flat, sees(batch, window))


def test_bf16_is_near_and_leaves_weights_and_gradients_in_float32() -> None:
    model, samples = other_model("Llama", **MODELS["Llama"]), random_samples(6)
    exact = reference_gradient(in_float64(model), samples)
    for checkpointing in (False, True):
        spec = KernelSpec(precision="bf16", checkpointing=checkpointing)
        way = way_for(model, spec).way
        ours = weighted_gradient(model, samples, way, max_tokens=60)
        assert 1e-5 < distance(ours, exact) < 0.05
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    (plain, *_), (near, *_) = (
        sample_logprobs(model, samples, kernel=KernelSpec(precision=p)) for p in ("fp32", "bf16")
    )
    assert near != plain
    assert near == pytest.approx(plain, abs=0.3)
