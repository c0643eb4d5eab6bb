"""Keys and values of many dialogues between their messages.

A slot holds what one dialogue's context left behind in the model. The tokens all dialogues begin
with (rules and tool schemas) are held once, as a `Prefix`, and a slot then holds only what follows:

    context of a dialogue    [ rules, tools ........ | user, agent, tool, ... ]
                               prefix.layers[layer]    cache.layers[layer][slot.index]
                               positions 0..shared     own offsets 0.. = positions shared..

Owns: storage, which dialogue has which slot, eviction of the least recently used, how prefixes are
found. Does not own: the forward pass that fills it. Everything is dropped when the weights change
(`clear`): keys and values of older weights are never read again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

from muarl.errors import SetupError

# A prefix is worth its own attention call from about this many tokens on.
_MIN_PREFIX_TOKENS = 32
# Each prefix costs one attention call a layer; rows of further ones hold their whole context.
_MAX_PREFIXES = 16
# Attention reads slots in steps of so many tokens (see slot_plan), so they have whole steps.
SPAN_STEP = 64


def common_prefix(a: list[int], b: list[int]) -> int:
    """Length of the longest common prefix, by bisection on list comparisons (which are C)."""
    same, differ = 0, min(len(a), len(b)) + 1
    while differ - same > 1:
        middle = (same + differ) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            differ = middle
    return same


@dataclass(eq=False, slots=True)
class Prefix:
    """Tokens that many dialogues begin with; their keys and values, stored once.

    Attributes:
        ids: [P] the tokens.
        length: How many of them new dialogues share; it only ever shrinks, towards what all share.
        layers: Keys and values, per layer `[P, 2, kv_heads, head_dim]`.
    """

    ids: list[int]
    length: int
    layers: list[torch.Tensor]


@dataclass(eq=False, slots=True)
class Slot:
    """What one dialogue's context left in the model.

    Attributes:
        index: Its row in the storage.
        dialogue: Whose it is.
        ids: Tokens whose keys and values are held, from the start of the context.
        prefix: Where the first `shared` of them are held; None when shared is 0.
        shared: See prefix.
        busy: A message is being sampled in it; it cannot be evicted.
    """

    index: int
    dialogue: str
    ids: list[int] = field(default_factory=list)
    prefix: Prefix | None = None
    shared: int = 0
    busy: bool = False

    def keep(self, length: int) -> None:
        """Forget what lies behind the first `length` tokens."""
        del self.ids[length:]
        self.shared = min(self.shared, length)
        if self.shared == 0:
            self.prefix = None


class SlotCache:
    """Storage of keys and values, and who has which slot.

    Attributes:
        layers: Per layer `[slots, max_len, 2, kv_heads, head_dim]`: a token's key, then its value.
        max_len: Tokens a slot can hold, in whole steps.
        token_bytes: Of one token's key and value in one layer.
    """

    def __init__(
        self,
        *,
        layers: int,
        slots: int,
        kv_heads: int,
        max_len: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        learn_prefixes: bool = True,
    ) -> None:
        max_len = -(-max_len // SPAN_STEP) * SPAN_STEP
        shape = (slots, max_len, 2, kv_heads, head_dim)
        self.max_len = max_len
        self.token_bytes = 2 * kv_heads * head_dim * dtype.itemsize
        try:
            self.layers = [_zeros(shape, dtype, device) for _ in range(layers)]
        except (MemoryError, ValueError, OverflowError, torch.OutOfMemoryError) as error:
            size = layers * slots * max_len * self.token_bytes / 2**30
            raise SetupError(
                f"{slots} dialogues of {max_len} tokens at once take {size:,.1f} GiB for their keys and "
                f"values, more than {device} has left. Lower rollout.context_tokens or "
                "rollout.concurrency"
            ) from error
        self._free = list(range(slots - 1, -1, -1))
        self._slots: dict[str, Slot] = {}  # least recently used first
        self._num_busy = 0
        self._prefixes: list[Prefix] = []
        self._forming: list[list[int]] = []  # first prompts claimed since learn_prefixes
        self._learns = learn_prefixes

    def clear(self) -> None:
        """Drop all keys and values: the weights they were computed with are gone."""
        self._free.extend(slot.index for slot in self._slots.values())
        self._slots.clear()
        self._num_busy = 0
        self._prefixes.clear()
        self._forming.clear()

    def __contains__(self, dialogue: str) -> bool:
        return dialogue in self._slots

    @property
    def busy_share(self) -> float:
        """Share of the slots in which a message is being sampled."""
        return self._num_busy / self.layers[0].shape[0]

    def claim(self, dialogue: str, prompt: list[int]) -> Slot | None:
        """The dialogue's slot, holding as much of `prompt` as is known but at least one token less.

        At least the last token of a prompt is computed anew, since its logits are wanted.

        Returns:
            None if it must wait: every slot is busy, or the dialogue's is, or another prompt with
            the same beginning is just being computed and will be its prefix.
        """
        slot = self._slots.get(dialogue)
        if slot is not None and slot.busy:
            return None
        known = min(common_prefix(slot.ids, prompt), len(prompt) - 1) if slot is not None else 0
        prefix = self._match(prompt) if known == 0 else None
        if known == 0 and prefix is None and self._is_forming(prompt):
            return None
        if slot is None:
            index = self._take_index()
            if index is None:
                return None
            slot = Slot(index, dialogue)
        slot.keep(known)
        if prefix is not None:
            slot.prefix, slot.shared = prefix, prefix.length
            slot.ids = prompt[: prefix.length]
        elif known == 0:
            self._forming.append(prompt)
        slot.busy = True
        self._num_busy += 1
        self._slots[dialogue] = self._slots.pop(dialogue, slot)
        return slot

    def release(self, slot: Slot) -> None:
        """Let the slot be evicted; until then it keeps what it holds for the next message."""
        slot.busy = False
        self._num_busy -= 1

    def _is_forming(self, prompt: list[int]) -> bool:
        return self._learns and any(
            common_prefix(other, prompt) >= _MIN_PREFIX_TOKENS for other in self._forming
        )

    def learn_prefixes(self, prompts: Iterable[list[int]]) -> None:
        """Find what the first prompts of new dialogues share with each other and with known ones.

        A prefix is born when a prompt agrees with a held context that has none, and shrinks when a
        prompt agrees with more than half of it but not with all. So after a few dialogues it is
        what all of them share, without anyone having said what that is.
        """
        self._forming.clear()
        if not self._learns:
            return
        for prompt in prompts:
            for prefix in self._prefixes:
                agreed = min(common_prefix(prefix.ids, prompt), len(prompt) - 1)
                if agreed >= max(_MIN_PREFIX_TOKENS, prefix.length // 2):
                    prefix.length = min(prefix.length, agreed)
                    break
            else:
                self._found_prefix(prompt)

    def lend(self) -> Slot:
        """An empty slot that is no dialogue's; only while no dialogue has one."""
        return Slot(self._free.pop(), dialogue="")

    def make_prefix(self, slot: Slot) -> None:
        """Make what a lent slot holds a prefix, and take the slot back."""
        self._prefixes.append(self._move_to_prefix(slot, len(slot.ids)))
        self.take_back(slot)

    def take_back(self, slot: Slot) -> None:
        """End the loan of a slot."""
        self._free.append(slot.index)

    def _found_prefix(self, prompt: list[int]) -> None:
        if len(self._prefixes) == _MAX_PREFIXES:
            used = {id(slot.prefix) for slot in self._slots.values()}
            self._prefixes = [prefix for prefix in self._prefixes if id(prefix) in used]
            if len(self._prefixes) == _MAX_PREFIXES:
                return
        for slot in self._slots.values():
            agreed = min(common_prefix(slot.ids, prompt), len(prompt) - 1, len(slot.ids) - 1)
            if slot.prefix is None and agreed >= _MIN_PREFIX_TOKENS:
                self._prefixes.append(self._move_to_prefix(slot, agreed))
                return

    def _move_to_prefix(self, slot: Slot, length: int) -> Prefix:
        """Make the first tokens of a slot a prefix, and the slot a user of it."""
        prefix = Prefix(slot.ids[:length], length, [])
        own = len(slot.ids) - length
        for layer in self.layers:
            row = layer[slot.index]
            prefix.layers.append(row[:length].clone())
            row[:own] = row[length : length + own].clone()
        slot.prefix, slot.shared = prefix, length
        return prefix

    def _match(self, prompt: list[int]) -> Prefix | None:
        """The longest prefix the prompt begins with."""
        best = None
        for prefix in self._prefixes:
            length = prefix.length
            longer = best is None or length > best.length
            if longer and length < len(prompt) and prompt[:length] == prefix.ids[:length]:
                best = prefix
        return best

    def _take_index(self) -> int | None:
        if self._free:
            return self._free.pop()
        if self._num_busy == len(self._slots):
            return None
        for dialogue, slot in self._slots.items():
            if not slot.busy:
                del self._slots[dialogue]
                return slot.index
        return None


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros, not empty: masked values are multiplied by zero, and 0 * NaN is NaN.

    On a CPU NumPy's zeros, which take memory only where they are written; torch's take it all.
    """
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    size = math.prod(shape) * dtype.itemsize
    return torch.from_numpy(np.zeros(size, dtype=np.uint8)).view(dtype).view(shape)
