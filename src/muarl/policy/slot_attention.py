"""Attention of a flat batch of tokens to the slots of a `SlotCache`.

One forward pass takes the new tokens of many dialogues as one row `[1, N]`, so linear layers see no
padding. Attention is registered with transformers under a name of its own; `view_of` gives a second
module tree over the *same* parameters that uses it, so the trainer's own settings (attention
kernel, dropout, checkpointing) stay as they are and no weight is copied. Parameters may be written
in place, but not exchanged for others.

A token attends to its dialogue's shared prefix and to its own slot separately, and the two results
are joined by their log-sum-exps (as in FlashAttention, arXiv 2205.14135, and Hydragen,
arXiv 2402.05099): exact, and the prefix is read once for all dialogues.

Shapes: N new tokens, R dialogues, L new tokens of one dialogue (padded), S own tokens held,
H = K * G heads in K groups that share keys and values, D head_dim.
"""

from __future__ import annotations

import copy

import torch
from transformers import AttentionInterface, PreTrainedModel

from muarl.errors import SetupError
from muarl.policy.slot_plan import Block, Pass, SharedBlock

ATTENTION = "muarl_slots"

# What transformers passes to attention functions of models that need more than softmax(q k) v.
_UNSUPPORTED = ("sliding_window", "softcap", "s_aux", "position_bias")

# Queries that attend to a prefix go in portions of this size, so that their number does not change
# how sums are rounded.
_QUERIES = 32


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
    return attend_plainly(query, key, value, bias, scale)


def attend_plainly(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attend` in operations that every device has."""
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
    slot_pass: Pass,
    scaling: float | None = None,
    **others: object,
) -> tuple[torch.Tensor, None]:
    """Transformers' attention interface: `[1, H, N, D]` in, `[1, N, H, D]` out.

    Raises:
        SetupError: The model asks for something that is not plain softmax attention.
    """
    if asked := [name for name in _UNSUPPORTED if others.get(name) is not None]:
        raise SetupError(f"the embedded sampler's attention does not know {', '.join(asked)}")
    layer: int = module.layer_idx  # type: ignore[assignment]
    storage = slot_pass.cache.layers[layer]
    padded, kv_heads, head_dim = query.shape[2], storage.shape[3], storage.shape[4]
    tokens = len(slot_pass.places)
    scale = head_dim**-0.5 if scaling is None else scaling
    new = torch.stack((key[0].transpose(0, 1), value[0].transpose(0, 1)), dim=1)  # [N, 2, K, D]
    storage.flatten(0, 1).index_copy_(0, slot_pass.places, new[:tokens])
    q = query[0].transpose(0, 1).reshape(padded, kv_heads, -1, head_dim)  # [N, K, G, D]
    parts = [_own(q[block.tokens], storage, block, scale) for block in slot_pass.blocks]
    nothing = q[tokens:]  # the padding's output is not read
    out = torch.cat([*(part[0] for part in parts), nothing])  # [N, K, G, D]
    norm = torch.cat([*(part[1] for part in parts), nothing[..., 0]])  # [N, K, G]
    for shared in slot_pass.shared:
        at = slice(None) if shared.tokens is None else shared.tokens
        other, other_norm = _prefix(q[at], shared, layer, scale)
        # Not torch.sigmoid: its last bits depend on how many numbers it is given.
        share = (1 / (1 + torch.exp(norm[at] - other_norm))).to(out.dtype)[..., None]
        out[at] = torch.lerp(out[at], other, share)
    return out.reshape(1, padded, -1, head_dim), None


def _own(
    query: torch.Tensor, storage: torch.Tensor, block: Block, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of a block's tokens [n, K, G, D] to their slots: the same shape, and [n, K, G]."""
    held = storage[:, : block.span].index_select(0, block.slots)  # [R, S, 2, K, D]
    key, value = held.transpose(1, 3).unbind(2)  # [R, K, S, D] each
    if block.pad is None or block.unpad is None:
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
    flat = query.transpose(0, 1).reshape(kv_heads, tokens * group, head_dim)
    flat = torch.nn.functional.pad(flat, (0, 0, 0, -flat.shape[1] % _QUERIES))
    flat = flat.reshape(kv_heads, -1, _QUERIES, head_dim).transpose(0, 1)  # [B, K, Q, D]
    held = shared.prefix.layers[layer][None, : shared.length]  # [1, P, 2, K, D]
    key, value = held.transpose(1, 3).expand(len(flat), -1, -1, -1, -1).unbind(2)
    out, norm = attend(flat, key, value, None, scale)
    out = out.transpose(0, 1).reshape(kv_heads, -1, head_dim)[:, : tokens * group]
    norm = norm.transpose(0, 1).reshape(kv_heads, -1)[:, : tokens * group]
    out = out.reshape(kv_heads, tokens, group, head_dim).transpose(0, 1)
    return out, norm.reshape(kv_heads, tokens, group).transpose(0, 1)


def twin_of(model: PreTrainedModel) -> PreTrainedModel:
    """A second module tree over the same parameters and buffers, in evaluation mode."""
    same = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin: PreTrainedModel = copy.deepcopy(model, same)
    twin.train(mode=False)
    return twin


def view_of(model: PreTrainedModel) -> PreTrainedModel:
    """A twin that attends to slots.

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
    view = twin_of(model)
    view.set_attn_implementation(ATTENTION)
    return view
