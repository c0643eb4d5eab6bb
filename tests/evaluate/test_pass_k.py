"""pass^k and pass@k, against closed forms and against every way to draw k trials."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.evaluate.pass_k import Trials, ks_of, pass_at, pass_hat


def trials(*successes: int, of: int = 4) -> Trials:
    """Tasks t0, t1, ... with so many successes each."""
    return {f"t{i}": [n < c for n in range(of)] for i, c in enumerate(successes)}


def test_they_match_their_closed_forms() -> None:
    # C(2,2)/C(4,2) = 1/6, C(4,2)/C(4,2) = 1, C(1,2) = 0
    assert pass_hat(trials(2, 4, 1), 2).value == pytest.approx((1 / 6 + 1) / 3)
    assert pass_at(trials(1, 4, 0), 2).value == pytest.approx((1 / 2 + 1) / 3)
    assert pass_hat(trials(3, 4), 4).value == pass_at(trials(0, 1), 4).value == 0.5
    assert pass_hat(trials(3, 1), 1).value == pass_at(trials(3, 1), 1).value == 0.5


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_they_are_the_mean_over_all_ways_to_draw_k_trials(
    one_task: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(one_task)))
    draws = list(combinations(one_task, k))
    assert pass_hat({"a": one_task}, k).value == pytest.approx(fmean(all(draw) for draw in draws))
    assert pass_at({"a": one_task}, k).value == pytest.approx(fmean(any(draw) for draw in draws))


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.9])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 2), (8, 3), (8, 8)])
def test_they_are_unbiased_whatever_a_tasks_chance(chance: float, n: int, k: int) -> None:
    """The mean over the binomial distribution of successes is p^k, and 1 - (1 - p)^k."""
    weights = [math.comb(n, c) * chance**c * (1 - chance) ** (n - c) for c in range(n + 1)]
    told = [(pass_hat(trials(c, of=n), k), pass_at(trials(c, of=n), k)) for c in range(n + 1)]
    hat = sum(w * (one.value or 0) for w, (one, _) in zip(weights, told, strict=True))
    at = sum(w * (one.value or 0) for w, (_, one) in zip(weights, told, strict=True))
    assert hat == pytest.approx(chance**k)
    assert at == pytest.approx(1 - (1 - chance) ** k)


def test_a_task_with_too_few_trials_is_left_out() -> None:
    for of in (pass_hat, pass_at):
        found = of({"a": [True, True], "b": [True]}, 2)
        assert (found.value, found.n) == (1.0, 1)
        assert of({"b": [True]}, 2).value is None
        with pytest.raises(ValueError, match="k >= 1"):
            of({"b": [True]}, 0)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8), st.integers(1, 4))
def test_they_are_within_their_intervals_and_ordered(successes: list[int], k: int) -> None:
    hat, at = pass_hat(trials(*successes), k), pass_at(trials(*successes), k)
    for found in (hat, at):
        assert 0 <= found.low <= found.value <= found.high <= 1  # type: ignore[operator]
    assert hat.value <= at.value + 1e-12  # type: ignore[operator]


def test_powers_of_two_and_the_number_of_trials_are_told() -> None:
    assert [ks_of(n) for n in (1, 2, 5, 8)] == [[1], [1, 2], [1, 2, 4, 5], [1, 2, 4, 8]]
