"""Log-probs of sampled tokens, and of no other.

P prefix tokens, B samples, S suffix tokens, N sampled tokens, H hidden width, V vocabulary.

Three things make this cheap, and none changes a result beyond rounding (law L6):

1. The prefix that all samples share runs once; its keys and values, with their gradient, serve
   as the cache of every suffix.
2. The output layer sees only the N hidden states that predict a sampled token, not all P + B·S.
3. It sees them in chunks and forgets their logits: no [N, V] tensor ever exists. The backward pass
   computes a chunk's logits again.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

from muarl.kernel.batch import MicroBatch

LOGITS_PER_CHUNK = 1 << 20
"""Logits alive at once (4 MiB in fp32)."""


class TokenScores(NamedTuple):
    """What the model thinks of the sampled tokens of a micro-batch.

    Attributes:
        logprobs: [N] log-probabilities, with gradient.
        entropy: [N] entropy in nats of the distribution each was drawn from, without gradient.
    """

    logprobs: Tensor
    entropy: Tensor


def score_tokens(
    model: PreTrainedModel, batch: MicroBatch, *, temperature: float = 1.0
) -> TokenScores:
    """Score every sampled token of a micro-batch under the model's weights.

    Args:
        model: Any causal language model of transformers.
        batch: The tokens.
        temperature: Logits are divided by it, as the sampler did; 0 (greedy) reads as 1.
    """
    hidden = hidden_states(model, batch)[batch.predictors]
    head = model.get_output_embeddings()
    scale = 1.0 / (temperature or 1.0)
    rows = max(1, LOGITS_PER_CHUNK // head.weight.shape[0])
    chunks = [
        checkpoint(_score_chunk, head, part, targets, scale, use_reentrant=False)
        for part, targets in zip(hidden.split(rows), batch.targets.split(rows), strict=True)
    ]
    logprobs, entropy = zip(*chunks, strict=True)
    return TokenScores(torch.cat(logprobs), torch.cat(entropy))


def hidden_states(model: PreTrainedModel, batch: MicroBatch) -> Tensor:
    """[P + B·S, H] final hidden states: the prefix, then each suffix with its padding."""
    backbone = model.base_model
    prefix = len(batch.prefix_ids)
    if not prefix:
        return backbone(batch.suffix_ids, use_cache=False).last_hidden_state.flatten(0, 1)
    shared = backbone(batch.prefix_ids[None], past_key_values=DynamicCache(), use_cache=True)
    rows, width = batch.suffix_ids.shape
    cache = DynamicCache(
        [
            (keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
            for keys, values, *_ in shared.past_key_values
        ]
    )
    # A suffix token sees the whole prefix and its own past; the same for every row.
    mask = torch.ones(width, prefix + width, dtype=torch.bool).tril(prefix)
    own = backbone(
        batch.suffix_ids,
        attention_mask=mask[None, None],
        position_ids=torch.arange(prefix, prefix + width)[None],
        past_key_values=cache,
        use_cache=True,
    )
    return torch.cat([shared.last_hidden_state[0], own.last_hidden_state.flatten(0, 1)])


def _score_chunk(
    head: torch.nn.Module, hidden: Tensor, targets: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    logits = head(hidden).float() * scale
    normalizer = logits.logsumexp(-1)
    logprobs = logits.gather(-1, targets[:, None])[:, 0] - normalizer
    with torch.no_grad():
        entropy = normalizer - ((logits - normalizer[:, None]).exp() * logits).sum(-1)
    return logprobs, entropy
