"""Laying out one forward pass over a flat batch of tokens: which goes where, what it attends to.

Sizes are rounded so that a token's result does not depend on what is beside it, to the last bit
(law L5). What matrix kernels round differently, as measured with MKL on AVX-512: fewer than four
rows, or with two threads a number that is no multiple of four; sums over a number of keys that is
no multiple of 16; and, for several queries at once, over more than 160 keys split otherwise.

Shapes: N new tokens, R dialogues, L new tokens of one dialogue (padded), S own tokens held,
G heads that share a key head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from muarl.policy.slot_cache import SPAN_STEP, Prefix, Slot, SlotCache

# Keys and values that one attention call gathers: more would fall out of a core's cache before
# they are read.
_BLOCK_BYTES = 1 << 20
_FEW_KEYS = 128  # up to here sums over keys are not split


@dataclass(frozen=True, slots=True)
class Block:
    """Dialogues whose own slots are attended to in one padded call.

    Attributes:
        tokens: Where the block's tokens lie in the flat batch.
        slots: [R] rows of the storage.
        span: S, the most own tokens held by any of them, the new ones included.
        bias: [R, 1, L * G, S] 0 where a key is visible, -inf elsewhere.
        pad: [R, L] the token of the block in each place; None when L is 1.
        unpad: [tokens of the block] places in R * L; None when L is 1.
    """

    tokens: slice
    slots: torch.Tensor
    span: int
    bias: torch.Tensor
    pad: torch.Tensor | None = None
    unpad: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """Tokens that attend to the first `length` tokens of one prefix.

    Attributes:
        tokens: [n] indices in the flat batch, some repeated; None for the whole batch.
        prefix: Where the keys and values are.
        length: How many of them.
    """

    tokens: torch.Tensor | None
    prefix: Prefix
    length: int


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass.

    Attributes:
        cache: Storage to write to and read from.
        places: [N] where each token's key and value go in the storage, slot * max_len + offset.
        positions: [N + padding] each token's in its dialogue's context.
        last: [R + padding] the last token of each dialogue in the flat batch.
        blocks: Cover all tokens in order.
        shared: Cover the tokens whose dialogue has a prefix.
    """

    cache: SlotCache
    places: torch.Tensor
    positions: torch.Tensor
    last: torch.Tensor
    blocks: list[Block]
    shared: list[SharedBlock]


def block_order(slot: Slot, count: int) -> tuple[int, int, int]:
    """Sort key that puts rows of like size together, which `plan` makes blocks of.

    Args:
        slot: Of the row.
        count: Its new tokens.

    Returns:
        L, which adds less than a quarter or 8 tokens to the row's own; a class of S that rows of
        one block agree in; and S.
    """
    span = len(slot.ids) - slot.shared + count
    if count == 1:
        return 1, 0, span
    step = max(8, (1 << count.bit_length()) >> 3)
    return _round_up(count, step), _round_up(max(span, _FEW_KEYS), SPAN_STEP), span


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _span(kind: int, longest: int) -> int:
    """How many keys a block reads."""
    return kind if kind > _FEW_KEYS else _round_up(longest, 16)


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
        groups: G.
        dtype: Of the model's activations.
        device: Of the model.

    Example:
        Rows with 1, 1, 3 new tokens that hold 4, 7 and 2 own tokens already, after a prefix of 10:

            flat batch   a  b  c  d  e  and 3 that are nothing
            places       4  7  2  3  4  in their slots
            positions   14 17 12 13 14  0 0 0
            blocks      [a b] L=1 S=16, [c d e] L=8 S=16
    """
    counts = np.array([count for _, count in rows])
    slots = np.array([slot.index for slot, _ in rows])
    shared = np.array([slot.shared for slot, _ in rows])
    held = np.array([len(slot.ids) for slot, _ in rows]) - shared
    ends = np.cumsum(counts)
    within = np.arange(ends[-1]) - (ends - counts).repeat(counts)
    offsets = held.repeat(counts) + within

    def to(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(device)

    def bias_of(last_visible: np.ndarray, span: int) -> torch.Tensor:
        hidden = torch.arange(span, device=device) > to(last_visible)[..., None]
        return torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -np.inf)

    order = [block_order(*row) for row in rows]
    blocks: list[Block] = []
    singles = int((counts == 1).sum())
    if singles:  # one mask for all of them
        bias = bias_of(held[:singles], _round_up(int(held[:singles].max()) + 1, 16))
        bias = bias[:, None, None].expand(-1, 1, groups, -1)
    for start, end in _block_bounds(order, cache.token_bytes):
        length, kind, _ = order[start]
        tokens = slice(int(ends[start] - counts[start]), int(ends[end - 1]))
        span = _span(kind, int((held + counts)[start:end].max()))
        index = to(slots[start:end])
        if end <= singles:
            blocks.append(Block(tokens, index, span, bias[start:end, ..., :span]))
            continue
        # A padded place repeats the row's last token; its result is not read.
        place = np.minimum(np.arange(length), counts[start:end, None] - 1)  # [R, L]
        pad = (ends - counts)[start:end, None] - tokens.start + place
        unpad = np.arange(end - start).repeat(counts[start:end]) * length + within[tokens]
        mask = bias_of(held[start:end, None] + place, span).repeat_interleave(groups, dim=1)
        blocks.append(Block(tokens, index, span, mask[:, None], to(pad), to(unpad)))
    positions = np.zeros(_round_up(len(offsets), 4), dtype=np.int64)
    positions[: len(offsets)] = offsets + shared.repeat(counts)
    return Pass(
        cache,
        places=to(slots.repeat(counts) * cache.max_len + offsets),
        positions=to(positions),
        last=to(_repeat_to_four(ends - 1)),
        blocks=blocks,
        shared=_shared_blocks(rows, counts, device),
    )


def _repeat_to_four(index: np.ndarray) -> np.ndarray:
    """Repeat the last index up to a multiple of four."""
    return np.pad(index, (0, -len(index) % 4), mode="edge")


def _block_bounds(order: list[tuple[int, int, int]], token_bytes: int) -> list[tuple[int, int]]:
    """Start and end of each block: rows alike in size, together not over `_BLOCK_BYTES`."""
    bounds = []
    start = 0
    for i, (length, kind, span) in enumerate(order):
        full = (i + 1 - start) * span * token_bytes > _BLOCK_BYTES
        if i > start and (full or (length, kind) != order[start][:2]):
            bounds.append((start, i))
            start = i
    return [*bounds, (start, len(order))]


def _shared_blocks(
    rows: Sequence[tuple[Slot, int]], counts: np.ndarray, device: torch.device
) -> list[SharedBlock]:
    kinds = {(id(slot.prefix), slot.shared): slot for slot, _ in rows}
    if len(kinds) == 1:
        slot = rows[0][0]
        return [] if slot.prefix is None else [SharedBlock(None, slot.prefix, slot.shared)]
    blocks = []
    for kind, slot in kinds.items():
        if slot.prefix is not None:
            member = np.array([(id(other.prefix), other.shared) == kind for other, _ in rows])
            tokens = _repeat_to_four(np.flatnonzero(member.repeat(counts)))
            index = torch.from_numpy(tokens).to(device)
            blocks.append(SharedBlock(index, slot.prefix, slot.shared))
    return blocks
