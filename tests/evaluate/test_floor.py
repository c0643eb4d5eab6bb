"""The score above a floor, with an interval that holds what is not known of the floor, too."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.evaluate.floor import above_floor, highest
from muarl.evaluate.statistics import Interval, wilson


def known(share: float) -> Interval:
    return Interval(share, share, share, 1, "known")


@pytest.mark.parametrize(
    ("score", "floor", "above"), [(0.15, 0.15, 0), (1, 0.15, 1), (0.55, 0.1, 0.5), (0.1, 0.4, -0.5)]
)
def test_it_is_zero_at_the_floor_and_one_at_full_marks(
    score: float, floor: float, above: float
) -> None:
    found = above_floor(known(score), known(floor))
    assert found is not None
    for value in (found.value, found.low, found.high):
        assert value == pytest.approx(above, abs=1e-9)


def test_a_floor_as_uncertain_as_it_is_far_from_one_is_no_division_by_zero() -> None:
    """Its lower limit misses twice what it misses: the ratio's formula is then 0 by 0."""
    score = Interval(0.95, 0.90, 0.98, 40, "known")
    at, near = (
        above_floor(score, Interval(0.9, low, 0.95, 40, "known")) for low in (0.8, 0.8 + 1e-6)
    )
    assert at is not None
    assert near is not None
    assert at.high == pytest.approx(near.high, abs=1e-5)


def test_a_floor_that_is_known_moves_the_scores_own_limits() -> None:
    score = wilson(80, 100)
    found = above_floor(score, known(0.2))
    assert found is not None
    assert score.low is not None
    assert score.high is not None
    assert found.low == pytest.approx((score.low - 0.2) / 0.8)
    assert found.high == pytest.approx((score.high - 0.2) / 0.8)


@given(
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
)
def test_a_floor_of_a_few_dialogues_makes_it_wider_and_it_holds_its_value(
    score: tuple[int, int], floor: tuple[int, int]
) -> None:
    wide = above_floor(wilson(*score), wilson(*floor))
    narrow = above_floor(wilson(*score), known(floor[0] / floor[1]))
    for found in (wide, narrow):
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.value is not None
        assert found.low <= found.value <= found.high <= 1
    assert wide.low <= narrow.low + 1e-9  # type: ignore[union-attr, operator]
    assert wide.high >= narrow.high - 1e-9  # type: ignore[union-attr, operator]


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(5)
    held = 0
    for _ in range(1500):
        score, floor = (sum(rng.random() < p for _ in range(60)) for p in (0.7, 0.15))
        found = above_floor(wilson(score, 60), wilson(floor, 60))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= (0.7 - 0.15) / 0.85 <= found.high
    assert 0.93 <= held / 1500 <= 0.97


def test_what_cannot_be_said_is_not_said() -> None:
    nothing = wilson(0, 0)
    assert above_floor(nothing, wilson(1, 9)) is None
    assert above_floor(wilson(1, 9), wilson(9, 9)) is None
    of_one_task = Interval(0.5, None, None, 4, "wilson by task")
    found = above_floor(of_one_task, wilson(1, 9))
    assert found is not None
    assert (found.low, found.high) == (None, None)


def test_the_floor_is_the_best_policy_without_skill() -> None:
    assert highest([wilson(1, 9), wilson(0, 0), wilson(3, 9)]) == wilson(3, 9)
    assert highest([]) is None
