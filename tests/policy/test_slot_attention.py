"""Attention over slots and prefixes against plain softmax attention, row by row."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.errors import SetupError
from muarl.policy import slot_attention, slot_plan
from muarl.policy.slot_cache import Prefix, Slot, SlotCache
from muarl.policy.slot_plan import block_order, plan

KV_HEADS, HEAD_DIM = 2, 8
MODULE = SimpleNamespace(layer_idx=0)

rows_of_a_pass = st.lists(
    st.tuples(
        st.integers(0, 150), st.integers(1, 40), st.sampled_from([0, 0, 5, 12]), st.booleans()
    ),
    min_size=1,
    max_size=7,
)


def build(
    rows: list[tuple[int, int, int, bool]],
) -> tuple[SlotCache, list[tuple[Slot, int]]]:
    """A cache of random keys and values, and rows: held own, new, shared, whether L is 1."""
    cache = SlotCache(
        layers=1,
        slots=len(rows) + 1,
        kv_heads=KV_HEADS,
        max_len=200,
        head_dim=HEAD_DIM,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    cache.layers[0].normal_()
    prefix = Prefix([0] * 12, 12, [torch.randn(12, 2, KV_HEADS, HEAD_DIM)])
    slots = [
        (Slot(i + 1, str(i), [0] * (held + shared), prefix if shared else None, shared), count)
        for i, (held, new, shared, single) in enumerate(rows)
        for count in [1 if single else new]
    ]
    return cache, sorted(slots, key=lambda row: block_order(*row))


def expected(cache: SlotCache, slot: Slot, query: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Queries [n, H, D] of a row with new keys and values [n, 2, K, D], in float64."""
    own = len(slot.ids) - slot.shared
    parts = [cache.layers[0][slot.index, :own], new]
    if slot.prefix is not None:
        parts.insert(0, slot.prefix.layers[0][: slot.shared])
    key, value = torch.cat(parts).double().unbind(1)  # [S, K, D]
    groups = query.shape[1] // KV_HEADS
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = torch.einsum("nhd,shd->hns", query.double(), key) * HEAD_DIM**-0.5
    visible = torch.ones(scores.shape[1:], dtype=torch.bool).tril(len(slot.ids))
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    return torch.einsum("hns,shd->nhd", weights, value)


@settings(max_examples=60, deadline=None)
@given(rows_of_a_pass, st.integers(1, 3), st.sampled_from([1 << 20, 20_000]))
def test_every_token_attends_to_its_own_past_exactly(
    rows: list[tuple[int, int, int, bool]], groups: int, block_bytes: int
) -> None:
    torch.manual_seed(0)
    cache, feeds = build(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_plan, "_BLOCK_BYTES", block_bytes)
        slot_pass = plan(
            cache, feeds, groups=groups, dtype=torch.float32, device=torch.device("cpu")
        )
    padded, tokens = len(slot_pass.positions), sum(count for _, count in feeds)
    assert padded % 4 == 0
    assert padded - tokens < 4
    query = torch.randn(padded, KV_HEADS * groups, HEAD_DIM)
    new = torch.randn(padded, 2, KV_HEADS, HEAD_DIM)
    references, start = [], 0
    for slot, count in feeds:
        own = slice(start, start + count)
        references.append(expected(cache, slot, query[own], new[own]))
        positions = range(len(slot.ids), len(slot.ids) + count)
        assert slot_pass.positions[own].tolist() == list(positions)
        start += count
    out, _ = slot_attention.slot_attention(
        MODULE,  # type: ignore[arg-type]
        query.transpose(0, 1)[None],
        new[:, 0].transpose(0, 1)[None],
        new[:, 1].transpose(0, 1)[None],
        None,
        slot_pass=slot_pass,
    )
    torch.testing.assert_close(
        out[0, :tokens].double(), torch.cat(references), atol=1e-5, rtol=1e-5
    )


def test_the_portable_form_of_attention_equals_the_one_for_cpus() -> None:
    query, key, value = torch.randn(3, 2, 6, 8), torch.randn(3, 2, 20, 8), torch.randn(3, 2, 20, 8)
    bias = torch.zeros(3, 1, 6, 20).masked_fill(torch.rand(3, 1, 6, 20) < 0.3, -torch.inf)
    for mask in (None, bias):
        fast = slot_attention.attend(query, key, value, mask, 0.3)
        plain = slot_attention.attend_plainly(query, key, value, mask, 0.3)
        torch.testing.assert_close(fast, plain)


def test_what_is_not_plain_attention_is_refused() -> None:
    with pytest.raises(SetupError, match="softcap"):
        slot_attention.slot_attention(
            MODULE,  # type: ignore[arg-type]
            *[torch.zeros(1)] * 3,
            None,
            slot_pass=None,  # type: ignore[arg-type]
            softcap=30.0,
        )
