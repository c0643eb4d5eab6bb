from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_kit import said

from muarl.measure import CATALOGUE, View
from muarl.measure.reference import calibration_error, distances, jensen_shannon, wasserstein

numbers = st.lists(st.floats(-10, 10), min_size=1, max_size=20)
kinds = st.lists(st.sampled_from("abcd"), min_size=1, max_size=20)


def test_distances_by_hand() -> None:
    assert jensen_shannon("aabb", "ab") == 0
    assert jensen_shannon("aa", "bb") == 1
    assert jensen_shannon("ab", "a") == pytest.approx(0.311278, abs=1e-6)
    assert wasserstein([0, 1], [0, 1]) == 0
    assert wasserstein([0], [3]) == 3
    assert wasserstein([0, 0, 1], [1]) == pytest.approx(2 / 3)


@given(kinds, kinds)
def test_divergence_is_symmetric_and_bounded(ours: list[str], theirs: list[str]) -> None:
    d = jensen_shannon(ours, theirs)
    assert d == pytest.approx(jensen_shannon(theirs, ours), abs=1e-12)
    assert 0 <= d <= 1 + 1e-12
    assert jensen_shannon(ours, ours * 3) == pytest.approx(0, abs=1e-12)


@given(numbers, numbers, st.floats(-5, 5))
def test_the_area_between_is_a_distance(
    ours: list[float], theirs: list[float], shift: float
) -> None:
    d = wasserstein(ours, theirs)
    assert d == pytest.approx(wasserstein(theirs, ours), abs=1e-9)
    assert wasserstein([x + shift for x in ours], ours) == pytest.approx(abs(shift), abs=1e-6)
    assert d >= abs(sum(ours) / len(ours) - sum(theirs) / len(theirs)) - 1e-6


def test_a_sample_must_not_be_empty() -> None:
    with pytest.raises(ValueError, match="empty"):
        jensen_shannon([], "a")
    with pytest.raises(ValueError, match="empty"):
        wasserstein([1.0], [])


def views(count: int, *lines: str, reward: float) -> list[View]:
    return [View(said(*lines, task=f"t{i}", reward=reward)) for i in range(count)]


def test_what_is_right_on_average_can_be_wrong_in_each_outcome() -> None:
    long, short = "no no no no no no no no", "no"
    people = [*views(8, long, reward=1), *views(8, short, reward=0)]
    simulated = [*views(8, short, reward=1), *views(8, long, reward=0)]
    found = {
        d.outcome: d
        for d in distances(simulated, people, [CATALOGUE["words_per_turn"]])
        if d.name == "words_per_turn"
    }
    assert found["all"].value == 0
    assert found["success"].value == found["failure"].value == 7
    assert found["success"].halves == 0
    assert (found["success"].n, found["success"].n_reference) == (8, 8)
    assert "left" not in found


def test_calibration_is_within_bins_of_difficulty() -> None:
    def played(**success: float) -> list[View]:
        return [View(said("Hi.", task=task, reward=reward)) for task, reward in success.items()]

    people = played(easy=1, hard=0)
    assert calibration_error(played(easy=1, hard=0), people) == 0
    assert calibration_error(played(easy=0, hard=1), people) == 1  # the means are the same
    assert calibration_error(played(easy=1, hard=1), people) == 0.5
    assert calibration_error(played(other=1), people) is None
