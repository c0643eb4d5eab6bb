"""Tiny models, random samples, and a float64 reference that shares no code with the kernel."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedModel

from muarl.kernel.attention import caps_scores
from muarl.kernel.backbone import Way
from muarl.kernel.batch import MicroBatch
from muarl.kernel.logprobs import TokenScores, scored
from muarl.kernel.model import build_tiny_model
from muarl.record import Sample, Span
from muarl.spec.model import TinyModelSpec

VOCAB = 300
TINY = TinyModelSpec(
    vocab_size=VOCAB,
    hidden_size=16,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    ffn_size=24,
)


def tiny_model(seed: int = 0) -> PreTrainedModel:
    """A model whose distributions are far from uniform, so that mistakes show."""
    model = build_tiny_model(TINY, seed=seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    return model


def random_samples(
    count: int, *, seed: int = 0, prefix: int = 12, turns: int = 3, policy: float = 0.5
) -> list[Sample]:
    """Dialogues that share a prefix; a few random log-probs stand for the sampler's."""
    rng = random.Random(seed)

    def tokens(low: int, high: int) -> list[int]:
        return [rng.randrange(VOCAB) for _ in range(rng.randint(low, high))]

    head = tokens(prefix, prefix)
    samples = []
    for _ in range(count):
        ids = head + tokens(0, 3)
        spans = []
        for _ in range(rng.randint(1, turns)):
            said = tokens(1, 6)
            spans.append(Span(len(ids), len(ids) + len(said), 0))
            ids = ids + said + tokens(0, 5)
        logprobs = [-rng.random() * 8 for span in spans for _ in range(span.end - span.start)]
        samples.append(Sample(ids, spans, logprobs))
    return samples


@st.composite
def sample_lists(draw: st.DrawFn) -> list[Sample]:
    """Samples over few tokens, so that prefixes are shared by chance, twins included."""
    token = st.integers(0, 3)
    samples = []
    for _ in range(draw(st.integers(1, 6))):
        ids = draw(st.lists(token, min_size=1, max_size=6))
        spans = []
        for _ in range(draw(st.integers(0, 3))):
            said = draw(st.lists(token, min_size=1, max_size=4))
            spans.append(Span(len(ids), len(ids) + len(said), 0))
            ids = ids + said + draw(st.lists(token, max_size=3))
        samples.append(Sample(ids, spans))
    return samples


def reference_logprobs(
    model: PreTrainedModel, samples: Sequence[Sample], temperature: float = 1.0
) -> list[Tensor]:
    """One whole sample at a time, all logits, the textbook way; of the model's own dtype."""
    result = []
    for sample in samples:
        logits = model(torch.tensor([sample.token_ids])).logits[0] / temperature
        scores = logits.log_softmax(-1)
        places = [i for i, sampled in enumerate(sample.loss_mask()) if sampled]
        result.append(
            torch.stack([scores[i - 1, sample.token_ids[i]] for i in places])
            if places
            else logits.new_zeros(0)
        )
    return result


def in_float64(model: PreTrainedModel) -> PreTrainedModel:
    """A copy in double precision, with no gradients yet."""
    double = copy.deepcopy(model).double()
    double.zero_grad(set_to_none=True)
    return double


def gradients(model: PreTrainedModel, compute: Callable[[], Tensor]) -> dict[str, Tensor]:
    """Gradients of a scalar with respect to every trained parameter."""
    model.zero_grad(set_to_none=True)
    compute().backward()
    found = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def scored_gradient(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    way: Way,
    loss: Callable[[MicroBatch, TokenScores], Tensor],
    **how: Any,
) -> dict[str, Tensor]:
    """Gradients of the sum of the micro-batches' losses."""
    model.zero_grad(set_to_none=True)
    for batch, scores in scored(model, samples, way, **how):
        loss(batch, scores).backward()
    found = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def weighted_gradient(
    model: PreTrainedModel, samples: Sequence[Sample], way: Way, **how: Any
) -> dict[str, Tensor]:
    """Of the log-probs, each times a factor of its own, so that no two can be exchanged unnoticed."""
    factors = _factors(samples)
    return scored_gradient(
        model,
        samples,
        way,
        lambda batch, scores: (scores.logprobs * batch.gather(factors)).sum(),
        **how,
    )


def reference_gradient(
    model: PreTrainedModel, samples: Sequence[Sample], temperature: float = 1.0
) -> dict[str, Tensor]:
    """What `weighted_gradient` should be, by whole samples and all logits."""

    def compute() -> Tensor:
        found = torch.cat(reference_logprobs(model, samples, temperature))
        factors = [factor for row in _factors(samples) for factor in row]
        return (found * torch.tensor(factors).to(found)).sum()

    return gradients(model, compute)


def _factors(samples: Sequence[Sample]) -> list[list[float]]:
    rng = random.Random(5)
    return [[rng.uniform(-1, 1) for _ in range(sample.num_sampled)] for sample in samples]


def other_model(name: str, **settings: Any) -> PreTrainedModel:
    """A tiny random model of another architecture, its distributions far from uniform."""
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
    if caps_scores(model):  # as `load_model` does: the default leaves the caps out
        model.set_attn_implementation("eager")
    return model


EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
MODELS: dict[str, dict[str, Any]] = {
    "Qwen3": {"head_dim": 8},
    "Qwen3Moe": EXPERTS,
    "Llama": {"tie_word_embeddings": False},
    "Gemma": {"head_dim": 8},
    "Gemma2": {"head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8},
    "Gemma3Text": {"head_dim": 8, "sliding_window": 4, "num_hidden_layers": 7},
    "Mistral": {"sliding_window": 4},
    "GptOss": {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8},
    "Granite": {"logits_scaling": 4.0, "residual_multiplier": 0.5},
    "Cohere": {"logit_scale": 0.25},
    "GPTNeoX": {},
    "GPT2": {},
}
"""Windows, soft caps of scores and of logits, sinks, scales, experts, tied and untied embeddings."""


def distance(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    """Largest difference of two gradients, relative to the second's norm."""
    assert left.keys() == right.keys()
    norm = torch.stack([g.norm() for g in right.values()]).norm()
    return max(((left[n] - right[n]).norm() / norm).item() for n in left)
