"""p-values, against every pattern that was as likely."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.evaluate import permutation
from muarl.evaluate.permutation import difference_p, sign_flip_p

quarters = st.lists(st.integers(-4, 4).map(lambda n: n / 4), min_size=1, max_size=8)


def by_hand(of_tasks: list[float]) -> float:
    exact = [Fraction(d) for d in of_tasks]
    signs = list(product((1, -1), repeat=len(exact)))
    seen = abs(sum(exact))
    far = sum(abs(sum(s * d for s, d in zip(row, exact, strict=True))) >= seen for row in signs)
    return far / len(signs)


@given(quarters)
def test_p_is_the_share_of_patterns_as_far_from_zero(of_tasks: list[float]) -> None:
    assert sign_flip_p(of_tasks) == pytest.approx(by_hand(of_tasks))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=6))
def test_tasks_may_have_different_numbers_of_trials(counts: list[tuple[int, int]]) -> None:
    of_tasks = [float(Fraction(a, 3) - Fraction(b, 5)) for a, b in counts]
    exact = [float(Fraction(d).limit_denominator(15)) for d in of_tasks]
    assert sign_flip_p(of_tasks) == pytest.approx(
        min(1.0, by_hand_rational([Fraction(a, 3) - Fraction(b, 5) for a, b in counts]))
    )
    assert exact == pytest.approx(of_tasks)


def by_hand_rational(exact: list[Fraction]) -> float:
    signs = list(product((1, -1), repeat=len(exact)))
    far = sum(
        abs(sum(s * d for s, d in zip(row, exact, strict=True))) >= abs(sum(exact)) for row in signs
    )
    return far / len(signs)


@settings(max_examples=10)
@given(st.lists(st.integers(-4, 4).map(lambda n: n / 4), min_size=4, max_size=12))
def test_where_patterns_are_too_many_they_are_drawn(of_tasks: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permutation, "_MOST_BITS", 0)
        drawn = sign_flip_p(of_tasks, seed=3, draws=2000)
        assert drawn == sign_flip_p(of_tasks, seed=3, draws=2000)
    assert drawn == pytest.approx(sign_flip_p(of_tasks), abs=0.06)


def test_hundreds_of_tasks_are_counted_exactly() -> None:
    # 1000 tasks of 8 trials: a normal deviate of 2 has a two-sided p of about 0.0455.
    of_tasks = [1.0] * 532 + [-1.0] * 468
    assert sign_flip_p(of_tasks) == pytest.approx(0.0463, abs=5e-4)


def test_nothing_that_differs_is_no_evidence() -> None:
    assert sign_flip_p([]) is None
    assert sign_flip_p([0.0] * 30) == 1


Values = list[float]
shares = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=4)
rewards = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=4)


def dealt_by_hand(tasks: list[tuple[Values, Values]]) -> float:
    """Share of all deals of all tasks whose sum is as far from 0."""
    each: list[list[Fraction]] = []
    for first, second in tasks:
        pooled = [*map(Fraction, first), *map(Fraction, second)]
        n, m = len(first), len(second)
        parts = (sum(pooled[i] for i in taken) for taken in combinations(range(n + m), n))
        each.append([part / n - (sum(pooled) - part) / m for part in parts])
    seen = sum(Fraction(sum(a)) / len(a) - Fraction(sum(b)) / len(b) for a, b in tasks)
    sums = [sum(deal) for deal in product(*each)]
    return sum(abs(total) >= abs(seen) for total in sums) / len(sums)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(shares, shares), min_size=1, max_size=3)
    | st.lists(st.tuples(rewards, rewards), min_size=1, max_size=2)
)
def test_what_was_tried_unequally_is_dealt_again(tasks: list[tuple[Values, Values]]) -> None:
    first = {str(i): a for i, (a, _) in enumerate(tasks)} | {"uneven": [1.0], "only one": [1.0]}
    second = {str(i): b for i, (_, b) in enumerate(tasks)} | {"uneven": [1.0, 1.0]}
    p = difference_p(first, second)
    assert p == pytest.approx(dealt_by_hand(tasks), abs=0.02)
    assert p == difference_p(first, second)


def test_where_all_was_tried_as_often_signs_are_flipped() -> None:
    first = {str(i): [1.0, 1.0] for i in range(6)} | {"never tried": []}
    second = {str(i): [0.0, 0.0] for i in range(6)} | {"never tried": [1.0]}
    assert difference_p(first, second) == sign_flip_p([1.0] * 6) == 2 / 2**6
    assert difference_p({"a": [1.0]}, {"b": [1.0]}) is None


def test_thousands_of_trials_of_a_task_fit_into_no_float_and_are_counted() -> None:
    first, second = {"0": [1.0] * 700 + [0.0] * 700}, {"0": [1.0] * 700 + [0.0] * 701}
    assert comb(2801, 1400) > 1e308
    assert difference_p(first, second) == pytest.approx(1.0, abs=0.03)


def test_one_trial_against_eight_alarms_no_more_often_than_it_says() -> None:
    """Flipping signs called one of six such pairs different, both being the same policy."""
    rng = random.Random(5)
    alarms = 0
    for _ in range(300):
        chances = {str(task): rng.uniform(0.02, 0.10) for task in range(30)}
        first, second = (
            {task: [float(rng.random() < c) for _ in range(n)] for task, c in chances.items()}
            for n in (1, 8)
        )
        p = difference_p(first, second, draws=400)
        assert p is not None
        alarms += p < 0.05
    assert alarms / 300 < 0.09
