"""Tiny models, random samples, and a float64 reference that shares no code with the kernel."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedModel

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


def distance(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    """Largest difference of two gradients, relative to the second's norm."""
    assert left.keys() == right.keys()
    norm = torch.stack([g.norm() for g in right.values()]).norm()
    return max(((left[n] - right[n]).norm() / norm).item() for n in left)
