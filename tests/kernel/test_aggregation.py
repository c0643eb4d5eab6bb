"""Shares of tokens by their definitions, and what no share may depend on."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.kernel.aggregation import token_shares

KEPT = [[True, True, False], [True], [False]]

updates = st.lists(st.lists(st.booleans(), max_size=6), min_size=1, max_size=6).filter(
    lambda rows: any(map(any, rows))
)


@pytest.mark.parametrize(
    ("aggregation", "constant", "expected"),
    [
        ("token", None, [[1 / 3, 1 / 3, 0], [1 / 3], [0]]),
        ("sequence", None, [[1 / 4, 1 / 4, 0], [1 / 2], [0]]),
        ("constant", 10, [[1 / 20, 1 / 20, 0], [1 / 20], [0]]),
    ],
)
def test_rejected_tokens_leave_the_denominator(
    aggregation: Literal["token", "sequence", "constant"],
    constant: int | None,
    expected: list[list[float]],
) -> None:
    assert token_shares(KEPT, aggregation=aggregation, constant=constant) == expected


@given(updates, st.sampled_from(["token", "sequence"]))
def test_shares_of_a_mean_sum_to_one(
    kept: list[list[bool]], aggregation: Literal["token", "sequence"]
) -> None:
    shares = token_shares(kept, aggregation=aggregation)
    assert math.fsum(map(math.fsum, shares)) == pytest.approx(1)
    assert [[share > 0 for share in row] for row in shares] == kept


@given(updates, st.sampled_from(["token", "sequence", "constant"]), st.data())
def test_a_part_has_the_shares_that_it_has_in_the_whole(
    kept: list[list[bool]],
    aggregation: Literal["token", "sequence", "constant"],
    data: st.DataObject,
) -> None:
    cut = data.draw(st.integers(0, len(kept)))
    whole = token_shares(kept, aggregation=aggregation, constant=7)
    tokens, samples = sum(map(sum, kept)), sum(map(any, kept))
    parts = [
        token_shares(
            part, aggregation=aggregation, constant=7, num_tokens=tokens, num_samples=samples
        )
        for part in (kept[:cut], kept[cut:])
    ]
    assert parts[0] + parts[1] == whole
