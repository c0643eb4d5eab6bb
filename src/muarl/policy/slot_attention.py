"""Attention of a flat batch of tokens to the slots of a `SlotCache`.

One forward pass takes the new tokens of many dialogues as one row `[1, N]`, so linear layers see no
padding. Attention is registered with transformers under a name of its own; `view_of` gives a second
module tree over the *same* parameters that uses it, so the trainer's own settings (attention
kernel, dropout, checkpointing) stay as they are, and no weight is copied.

A token attends to its dialogue's shared prefix and to its own slot separately, and the two results
are joined by their log-sum-exps (as in FlashAttention, arXiv 2205.14135, and Hydragen,
arXiv 2402.05099): exact, and the prefix is read once for all dialogues.

Shapes: N new tokens, R dialogues, L new tokens of one dialogue (padded), S own tokens held,
H = K * G heads in K groups that share keys and values, D head_dim.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AttentionInterface, PreTrainedModel

from muarl.errors import SetupError
from muarl.policy.slot_cache import Prefix, Slot, SlotCache

ATTENTION = "muarl_slots"

# Keys and values one attention call gathers: they should still be in a core's cache when read.
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Dialogues whose own slots are attended to in one padded call.

    Attributes:
        tokens: Where the block's tokens lie in the flat batch.
        slots: [R] rows of the storage.
        span: S, the most own tokens held by any of them, the new ones included.
        bias: [R, 1, G * L, S] 0 where a key is visible, -inf elsewhere.
        pad: [R, L] the token of the block in each place; None when L is 1.
        unpad: [tokens of the block] places in R * L; None when L is 1.
    """

    tokens: slice
    slots: torch.Tensor
    span: int
    bias: torch.Tensor
    pad: torch.Tensor | None
    unpad: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """Tokens that attend to the first `length` tokens of one prefix.

    Attributes:
        tokens: [n] indices in the flat batch; None for all of them.
        prefix: Where the keys and values are.
        length: How many of them.
    """

    tokens: torch.Tensor | None
    prefix: Prefix
    length: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Where the tokens of one forward pass go, and what they attend to.

    Attributes:
        cache: Storage to write to and read from.
        places: [N] where each token's key and value go in the storage, slot * max_len + offset.
        blocks: Cover all tokens in order.
        shared: Cover the tokens whose dialogue has a prefix.
    """

    cache: SlotCache
    places: torch.Tensor
    blocks: list[Block]
    shared: list[SharedBlock]


def block_order(held: int, count: int) -> tuple[int, int]:
    """Sort key that puts rows of like size together, which `plan` makes blocks of.

    Args:
        held: Own tokens in the row's slot.
        count: New tokens; padding to the longest of a block adds at most a quarter, or 7 tokens.
    """
    step = max(8, 1 << (count.bit_length() - 3)) if count > 1 else 1
    return -(-count // step), held + count


def plan(
    cache: SlotCache,
    rows: Sequence[tuple[Slot, int]],
    *,
    groups: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Pass:
    """Lay out one forward pass.

    Args:
        cache: Where keys and values go.
        rows: Slot and number of new tokens of each dialogue, in the order of the flat batch,
            sorted by `block_order`.
        groups: G, heads that share keys and values.
        dtype: Of the model's activations.
        device: Of the model.

    Example:
        Rows with 1, 1, 3 new tokens that hold 4, 7 and 2 own tokens already:

            flat batch   a b c d e      slots [a b c c c]   offsets [4 7 2 3 4]
            blocks       [a b] L=1 S=8, [c d e] L=3 S=5
    """
    counts = np.array([count for _, count in rows])
    held = np.array([len(slot.ids) - slot.shared for slot, _ in rows])
    index = np.array([slot.index for slot, _ in rows])
    starts = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - starts.repeat(counts)
    slots = torch.from_numpy(index.repeat(counts)).to(device)
    offsets = torch.from_numpy(held.repeat(counts) + within).to(device)
    blocks: list[Block] = []
    start = token = 0
    for end in _block_ends(rows, cache.token_bytes):
        new = counts[start:end]
        tokens = slice(token, token + int(new.sum()))
        span = int((held[start:end] + new).max())
        blocks.append(
            _block(tokens, new.tolist(), slots[tokens], offsets[tokens], span, groups, dtype)
        )
        start, token = end, tokens.stop
    place = slots * cache.max_len + offsets
    return Pass(cache, place, blocks, _shared_blocks(rows, device))


def _block_ends(rows: Sequence[tuple[Slot, int]], token_bytes: int) -> list[int]:
    ends = []
    first = (0, 0)
    size = 0
    for i, (slot, count) in enumerate(rows):
        key = block_order(len(slot.ids) - slot.shared, count)
        size += 1
        if i and (key[0] != first[0] or size * key[1] * token_bytes > _BLOCK_BYTES):
            ends.append(i)
            size = 1
        if size == 1:
            first = key
    return [*ends, len(rows)]


def _block(
    tokens: slice,
    counts: list[int],
    slots: torch.Tensor,
    offsets: torch.Tensor,
    span: int,
    groups: int,
    dtype: torch.dtype,
) -> Block:
    keys = torch.arange(span, device=offsets.device)
    longest = max(counts)
    if longest == 1:
        hidden = keys > offsets[:, None]  # [R, S]
        bias = torch.zeros(hidden.shape, dtype=dtype, device=offsets.device)
        bias.masked_fill_(hidden, -torch.inf)
        return Block(tokens, slots, span, bias[:, None, None].expand(-1, 1, groups, -1), None, None)
    lengths = torch.tensor(counts, device=offsets.device)
    starts = lengths.cumsum(0) - lengths
    # A padded place repeats the row's last token; its result is not read.
    place = torch.arange(longest, device=offsets.device).minimum(lengths[:, None] - 1)
    pad = starts[:, None] + place  # [R, L]
    within = torch.arange(len(slots), device=offsets.device) - starts.repeat_interleave(lengths)
    row = torch.arange(len(counts), device=offsets.device).repeat_interleave(lengths)
    hidden = keys > offsets[pad][..., None]  # [R, L, S]
    bias = torch.zeros(hidden.shape, dtype=dtype, device=offsets.device)
    bias.masked_fill_(hidden, -torch.inf)
    bias = bias.repeat_interleave(groups, dim=1)[:, None]  # [R, 1, L * G, S]
    return Block(tokens, slots[starts], span, bias, pad, row * longest + within)


def _shared_blocks(rows: Sequence[tuple[Slot, int]], device: torch.device) -> list[SharedBlock]:
    tokens: dict[tuple[int, int], list[int]] = {}
    prefixes: dict[int, Prefix] = {}
    position = 0
    for slot, count in rows:
        if slot.prefix is not None:
            prefixes[id(slot.prefix)] = slot.prefix
            here = tokens.setdefault((id(slot.prefix), slot.shared), [])
            here.extend(range(position, position + count))
        position += count
    return [
        SharedBlock(
            None if len(index) == position else torch.tensor(index, device=device),
            prefixes[key],
            length,
        )
        for (key, length), index in tokens.items()
    ]


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention that also returns its log-normaliser.

    Args:
        query: [B, K, Q, D].
        key: [B, K, S, D].
        value: Like key.
        bias: [B, 1, Q, S] added to the scores, or None.
        scale: Multiplies the scores.

    Returns:
        Output [B, K, Q, D], and the log-sum-exp of the scores [B, K, Q].
    """
    if query.device.type == "cpu":
        # What scaled_dot_product_attention calls on a CPU, which hides the second result.
        result: tuple[torch.Tensor, torch.Tensor] = (
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                query, key, value, 0.0, False, attn_mask=bias, scale=scale
            )
        )
        return result
    scores = torch.matmul(query, key.transpose(-1, -2)).float() * scale
    if bias is not None:
        scores = scores + bias
    normaliser = scores.logsumexp(-1)
    weights = (scores - normaliser[..., None]).exp().to(value.dtype)
    return torch.matmul(weights, value), normaliser


def slot_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    slot_pass: Pass,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Transformers' attention interface: `[1, H, N, D]` in, `[1, N, H, D]` out."""
    layer: int = module.layer_idx  # type: ignore[assignment]
    keys, values = slot_pass.cache.keys[layer], slot_pass.cache.values[layer]
    tokens, kv_heads, head_dim = query.shape[2], keys.shape[2], keys.shape[3]
    keys.flatten(0, 1).index_copy_(0, slot_pass.places, key[0].transpose(0, 1))
    values.flatten(0, 1).index_copy_(0, slot_pass.places, value[0].transpose(0, 1))
    q = query[0].transpose(0, 1).reshape(tokens, kv_heads, -1, head_dim)  # [N, K, G, D]
    parts = [_own(q[block.tokens], keys, values, block, scaling) for block in slot_pass.blocks]
    out = torch.cat([part[0] for part in parts])  # [N, K, G, D]
    norm = torch.cat([part[1] for part in parts])  # [N, K, G]
    for shared in slot_pass.shared:
        at = slice(None) if shared.tokens is None else shared.tokens
        other, other_norm = _prefix(q[at], shared, layer, scaling)
        share = torch.sigmoid(other_norm - norm[at]).to(out.dtype)[..., None]
        out[at] = torch.lerp(out[at], other, share)
    return out.reshape(1, tokens, -1, head_dim), None


def _own(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, block: Block, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of a block's tokens [n, K, G, D] to their slots: the same shape, and [n, K, G]."""
    key = keys[:, : block.span].index_select(0, block.slots).transpose(1, 2)  # [R, K, S, D]
    value = values[:, : block.span].index_select(0, block.slots).transpose(1, 2)
    if block.pad is None:
        return attend(query, key, value, block.bias, scale)
    _, kv_heads, group, head_dim = query.shape
    rows, longest = block.pad.shape
    padded = query[block.pad].permute(0, 2, 1, 3, 4).flatten(2, 3)  # [R, K, L * G, D]
    out, norm = attend(padded, key, value, block.bias, scale)
    out = out.reshape(rows, kv_heads, longest, group, head_dim).transpose(1, 2)
    norm = norm.reshape(rows, kv_heads, longest, group).transpose(1, 2)
    return out.flatten(0, 1)[block.unpad], norm.flatten(0, 1)[block.unpad]


def _prefix(
    query: torch.Tensor, shared: SharedBlock, layer: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of tokens [n, K, G, D] to a prefix, all of it visible: like `_own`."""
    tokens, kv_heads, group, head_dim = query.shape
    flat = query.transpose(0, 1).reshape(1, kv_heads, tokens * group, head_dim)
    key = shared.prefix.keys[layer][None, : shared.length].transpose(1, 2)
    value = shared.prefix.values[layer][None, : shared.length].transpose(1, 2)
    out, norm = attend(flat, key, value, None, scale)
    out = out.reshape(kv_heads, tokens, group, head_dim).transpose(0, 1)
    return out, norm.reshape(kv_heads, tokens, group).transpose(0, 1)


def view_of(model: PreTrainedModel) -> PreTrainedModel:
    """A second module tree over the same parameters and buffers, attending to slots.

    Raises:
        SetupError: The model's attention does not go through transformers' interface, or is not
            full attention in every layer.
    """
    config = model.config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if not model._supports_attention_backend or kinds != {"full_attention"}:
        raise SetupError(
            f"the embedded sampler cannot run {type(model).__name__} (layers: {sorted(kinds)}); it "
            "needs full attention in every layer, through transformers' attention interface. "
            "Sample this model with the vLLM policy."
        )
    AttentionInterface.register(ATTENTION, slot_attention)
    same = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    view: PreTrainedModel = copy.deepcopy(model, same)
    view.set_attn_implementation(ATTENTION)
    view.train(mode=False)
    return view
