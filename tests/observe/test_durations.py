"""The histogram of durations."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from muarl.observe.durations import Durations

SECONDS = st.lists(st.floats(0.0, 100.0), max_size=50)


def of(seconds: list[float]) -> Durations:
    durations = Durations()
    for one in seconds:
        durations.add(one)
    return durations


@given(seconds=SECONDS, share=st.floats(0.01, 1.0))
def test_a_quantile_is_never_understated_and_overstated_by_a_fifth_at_most(
    seconds: list[float], share: float
) -> None:
    found = of(seconds).quantile(share)
    if not seconds:
        assert found is None
        return
    true = sorted(seconds)[max(1, math.ceil(share * len(seconds))) - 1]
    assert found is not None
    assert true <= found * (1 + 1e-6)
    assert found <= max(1e-4, true) * 1.2


@given(first=SECONDS, second=SECONDS)
def test_what_came_after_a_copy_is_told_apart(first: list[float], second: list[float]) -> None:
    durations = of(first)
    earlier = durations.copy()
    for one in second:
        durations.add(one)
    later, alone = durations.since(earlier), of(second)
    assert len(later) == len(second)
    assert len(earlier) == len(first)
    shares = (0.1, 0.5, 0.9, 1.0)
    assert [later.quantile(s) for s in shares] == [alone.quantile(s) for s in shares]


def test_what_takes_for_ever_is_counted_at_the_end_of_the_scale() -> None:
    assert of([1e9]).quantile(1.0) == of([104.0]).quantile(1.0)
