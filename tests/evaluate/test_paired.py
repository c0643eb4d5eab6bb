"""Comparisons on the same tasks, against closed forms and worlds whose truth is known."""

from __future__ import annotations

import random

import pytest

from muarl.evaluate.paired import (
    FourCells,
    gain_kept,
    overall,
    paired_difference,
)
from muarl.evaluate.pass_k import Trials
from muarl.evaluate.statistics import wilson


def trials(*successes: int, of: int = 4) -> Trials:
    """Tasks t0, t1, ... with so many successes each."""
    return {f"t{i}": [n < c for n in range(of)] for i, c in enumerate(successes)}


def test_a_paired_difference_is_over_the_tasks_of_both() -> None:
    first = {"a": [True, True], "b": [True, False], "only": [True]}
    second = {"a": [False], "b": [True, False, False, False], "other": [False]}
    found = paired_difference(first, second)
    assert found.value == pytest.approx((1 + 0.25) / 2)
    assert found.n == 2
    assert paired_difference(second, first).value == pytest.approx(-(1 + 0.25) / 2)


def test_tasks_that_all_differ_alike_prove_nothing_beyond_their_number() -> None:
    others = wilson(0, 20).high
    assert others is not None
    same = paired_difference(trials(*[3] * 20), trials(*[3] * 20))
    assert same.value == 0
    assert [same.low, same.high] == pytest.approx([-others, others])
    won = paired_difference(trials(*[4] * 20), trials(*[0] * 20))
    assert (won.value, won.high) == (1, 1)
    assert won.low == pytest.approx(1 - 2 * others)


def test_gain_kept_is_the_ratio_of_the_gains() -> None:
    found = gain_kept(
        FourCells(
            trained=trials(*[3, 4] * 30),
            cold=trials(*[1, 0] * 30),
            trained_practised=trials(*[4, 4] * 30),
            cold_practised=trials(*[1, 0] * 30),
        )
    )
    assert found.gain.value == pytest.approx(0.75)
    assert found.practised.value == pytest.approx(0.875)
    assert found.kept.value == pytest.approx(0.75 / 0.875)
    assert found.kept.low is not None
    assert found.kept.low < 0.75 / 0.875 < (found.kept.high or 0)
    assert found.verdict == "kept"


@pytest.mark.parametrize(
    ("trained", "verdict"), [([4] * 60, "kept"), ([1] * 60, "lost"), ([2, 4] * 10, "undecided")]
)
def test_the_verdict_is_what_the_whole_interval_says(trained: list[int], verdict: str) -> None:
    n = len(trained)
    cells = FourCells(trials(*trained), trials(*[0] * n), trials(*[4] * n), trials(*[0] * n))
    assert gain_kept(cells).verdict == verdict


def test_a_gain_that_may_be_nothing_is_not_divided_by() -> None:
    cells = FourCells(trials(4, 4, 4), trials(0, 0, 0), trials(4, 2, 0), trials(0, 2, 1))
    found = gain_kept(cells)
    assert found.practised.low is not None
    assert found.practised.low <= 0
    assert found.kept.value is not None
    assert (found.kept.low, found.kept.high, found.verdict) == (None, None, "undecided")
    assert "may be 0" in found.why


def test_where_training_gained_nothing_there_is_nothing_to_keep() -> None:
    cells = FourCells(trials(4, 4), trials(0, 1), trials(1, 1), trials(2, 1))
    found = gain_kept(cells)
    assert (found.kept.value, found.verdict) == (None, "undecided")
    apart = FourCells({"a": [True]}, {"b": [True]}, {"c": [True]}, {"d": [True]})
    assert gain_kept(apart).why == "no task was scored in all four cells"


def test_one_user_under_whom_it_is_lost_is_enough() -> None:
    assert overall(["kept", "lost", "undecided"]) == "lost"
    assert overall(["kept", "undecided"]) == "undecided"
    assert overall(["kept", "kept"]) == "kept"
    assert overall([]) == "undecided"


def test_the_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """60 worlds of 40 tasks; the truth is 0.4 gained with practice, of which 0.75 is kept."""
    rng = random.Random(5)
    worlds, num_tasks, num_trials = 60, 40, 3
    covered = {"gain": 0, "kept": 0}

    def play(chances: list[float]) -> Trials:
        return {
            f"t{i}": [rng.random() < chance for _ in range(num_trials)]
            for i, chance in enumerate(chances)
        }

    for world in range(worlds):
        hardness = [rng.uniform(0.0, 0.5) for _ in range(num_tasks)]
        found = gain_kept(
            FourCells(
                trained=play([h + 0.3 for h in hardness]),
                cold=play(hardness),
                trained_practised=play([h + 0.4 for h in hardness]),
                cold_practised=play(hardness),
            ),
            seed=world,
        )
        for name, truth in (("gain", 0.3), ("kept", 0.75)):
            interval = getattr(found, name)
            covered[name] += interval.low <= truth <= interval.high
    # 95 % of 60 is 57; a percentile bootstrap on 40 clusters falls a little short of it.
    assert all(0.9 <= count / worlds <= 1 for count in covered.values()), covered
