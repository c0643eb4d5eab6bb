"""Slots and prefixes, with token ids standing in for keys and values."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.errors import SetupError
from muarl.policy.slot_cache import Slot, SlotCache, common_prefix

# Beginnings of contexts: two that share 36 tokens, one that shares nothing, one too short.
A = list(range(100, 150))
BEGINNINGS = [A, A[:36] + [9] * 10, [7] * 40, [1, 2]]

messages = st.tuples(
    st.integers(0, 6),  # dialogue
    st.sampled_from(BEGINNINGS),
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.booleans(),  # whether it is released before the next one
)


def cache_of(slots: int, *, learn_prefixes: bool = True) -> SlotCache:
    return SlotCache(
        layers=2,
        slots=slots,
        kv_heads=1,
        max_len=64,
        head_dim=1,
        dtype=torch.float32,
        device=torch.device("cpu"),
        learn_prefixes=learn_prefixes,
    )


@pytest.mark.parametrize("max_len", [2**40, 2**62])
def test_more_than_the_machine_has_is_refused_with_what_to_lower(max_len: int) -> None:
    with pytest.raises(SetupError, match=r"8 dialogues of .* GiB.*Lower rollout.context_tokens or"):
        SlotCache(
            layers=1,
            slots=8,
            kv_heads=8,
            max_len=max_len,
            head_dim=128,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )


def compute(cache: SlotCache, slot: Slot, prompt: list[int]) -> None:
    """What a forward pass does: store the rest of the prompt; key = id, value = -id."""
    for layer, storage in enumerate(cache.layers):
        for position in range(len(slot.ids), len(prompt)):
            key = float(prompt[position] + 1000 * layer)
            storage[slot.index, position - slot.shared, :, 0, 0] = torch.tensor([key, -key])
    slot.ids += prompt[len(slot.ids) :]


def stored(cache: SlotCache, slot: Slot) -> list[list[int]]:
    """Ids as they are in the storage, per layer."""
    contexts = []
    for layer, storage in enumerate(cache.layers):
        own = storage[slot.index, : len(slot.ids) - slot.shared]
        parts = [own] if slot.prefix is None else [slot.prefix.layers[layer][: slot.shared], own]
        keys, values = torch.cat(parts)[:, :, 0, 0].unbind(1)
        assert torch.equal(keys, -values)
        contexts.append([int(key) - 1000 * layer for key in keys])
    return contexts


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.booleans(), st.lists(messages, max_size=25))
def test_a_slot_holds_what_it_says_whatever_came_before(
    slots: int, learn: bool, sent: list[tuple[int, list[int], list[int], bool]]
) -> None:
    cache = cache_of(slots, learn_prefixes=learn)
    busy: dict[str, Slot] = {}
    for number, beginning, end, release in sent:
        dialogue, prompt = str(number), beginning + end
        cache.learn_prefixes([] if dialogue in cache else [prompt])
        slot = cache.claim(dialogue, prompt)
        if slot is None:
            assert dialogue in busy or len(busy) == slots
        else:
            assert slot.ids == prompt[: len(slot.ids)]
            assert len(slot.ids) < len(prompt)
            compute(cache, slot, prompt)
            busy[dialogue] = slot
        if release:
            for each in busy.values():
                cache.release(each)
            busy.clear()
        for each in cache._slots.values():
            assert stored(cache, each) == [each.ids, each.ids]
        indices = [each.index for each in cache._slots.values()] + cache._free
        assert sorted(indices) == list(range(slots))
        assert {each.index for each in busy.values()} <= set(indices) - set(cache._free)


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix_is_the_longest(a: list[int], b: list[int]) -> None:
    length = common_prefix(a, b)
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


def test_a_prompt_waits_for_another_that_is_forming_its_prefix() -> None:
    cache = cache_of(4)
    prompts = {name: [*A, i] for i, name in enumerate("abc")}
    cache.learn_prefixes(prompts.values())
    first = cache.claim("a", prompts["a"])
    assert first is not None
    assert cache.claim("b", prompts["b"]) is None
    assert cache.claim("other", [7] * 40) is not None
    compute(cache, first, prompts["a"])
    cache.learn_prefixes([prompts["b"], prompts["c"]])
    for name in "bc":
        slot = cache.claim(name, prompts[name])
        assert slot is not None
        assert (slot.ids, slot.shared) == (A, len(A))
    assert first.shared == len(A)  # the one it came from shares it too


def test_a_prefix_shrinks_to_what_all_share_but_not_for_a_stranger() -> None:
    cache = cache_of(8)
    lengths = []
    for i, prompt in enumerate(([*A, 1], [*A, 2], A[:36] + [9] * 10, [*A[:36], 8], [*A[:10], 5])):
        cache.learn_prefixes([prompt])
        slot = cache.claim(str(i), prompt)
        assert slot is not None
        compute(cache, slot, prompt)
        lengths.append(slot.shared)
    assert lengths == [0, 50, 36, 36, 0]


def test_the_least_recently_used_dialogue_is_evicted_never_a_busy_one() -> None:
    cache = cache_of(2, learn_prefixes=False)
    first, second = cache.claim("a", [1, 2]), cache.claim("b", [1, 2])
    assert first is not None
    assert second is not None
    assert cache.claim("c", [1, 2]) is None
    cache.release(first)
    cache.release(second)
    assert cache.claim("a", [1, 2]) is first
    assert cache.claim("c", [1, 2]) is not None
    assert ("a" in cache, "b" in cache) == (True, False)


def test_clearing_leaves_nothing_to_reuse() -> None:
    cache = cache_of(2)
    for name in "ab":
        cache.learn_prefixes([[*A, 1]])
        slot = cache.claim(name, [*A, 1])
        assert slot is not None
        compute(cache, slot, [*A, 1])
    cache.clear()
    cache.learn_prefixes([[*A, 1]])
    slot = cache.claim("a", [*A, 1])
    assert slot is not None
    assert (slot.ids, slot.prefix) == ([], None)
