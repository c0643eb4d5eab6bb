"""What trainings with several seeds say of a further one, and what one alone does not."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from muarl.evaluate.trainings import ONE, between_trainings, over_trainings


def test_a_training_counts_once_however_many_dialogues_it_played() -> None:
    found = over_trainings({0: 0.90, 1: 0.94, 2: 0.95})
    assert found.mean.n == 3
    assert found.mean.value == pytest.approx(0.93)
    # Student's quantile of two degrees of freedom, 4.303, times 0.0265 / sqrt(3).
    assert found.mean.low == pytest.approx(0.93 - 0.0657, abs=1e-3)
    assert (found.low, found.high) == (0.90, 0.95)
    assert "over 3 training seeds, from 0.900 to 0.950" in found.says


def test_one_training_says_nothing_of_another() -> None:
    one = over_trainings({7: 0.9})
    assert (one.mean.value, one.mean.low, one.mean.high, one.says) == (0.9, None, None, ONE)
    assert between_trainings({7: 0.9}, {0: 0.1, 1: 0.2}).says == ONE
    assert over_trainings({}).says == "no training is known"


def test_trainings_that_came_out_alike_do_not_prove_that_all_do() -> None:
    found = over_trainings({0: 1.0, 1: 1.0, 2: 1.0})
    assert (found.mean.low, found.mean.high) == (None, None)
    assert "came out alike" in found.says
    assert "came out alike" in between_trainings({0: 1.0, 1: 1.0}, {2: 0.0, 3: 0.0}).says


def test_the_same_seeds_are_paired() -> None:
    cold, trained = {0: 0.2, 1: 0.5, 2: 0.8}, {0: 0.3, 1: 0.61, 2: 0.89}
    paired = between_trainings(trained, cold)
    apart = between_trainings(trained, {seed + 9: share for seed, share in cold.items()})
    assert paired.mean.value == pytest.approx(0.1) == apart.mean.value
    assert paired.mean.low is not None
    assert apart.mean.low is not None
    assert paired.mean.low > 0 > apart.mean.low


@pytest.mark.parametrize("spreads", [(0.05, 0.05), (0.02, 0.08)])
def test_differences_of_trainings_cover_the_truth(spreads: tuple[float, float]) -> None:
    rng = random.Random(3)
    held = []
    for _ in range(1500):
        first = {i: rng.gauss(0.6, spreads[0]) for i in range(5)}
        second = {i + 5: rng.gauss(0.5, spreads[1]) for i in range(4)}
        mean = between_trainings(first, second).mean
        assert mean.low is not None
        assert mean.high is not None
        held.append(mean.low <= 0.1 <= mean.high)
    assert 0.935 <= fmean(held) <= 0.975
