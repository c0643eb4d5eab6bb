"""Importance correction by its definition, and that it does what it is for."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from pydantic import ValidationError

from muarl.kernel.correction import importance_correction
from muarl.spec.grpo import CorrectionSpec

SAMPLER = [[-1.0, -2.0], [-0.5], []]
TRAINER = [[-1.0, -1.0], [-1.5], []]
"""Gaps (0, 1), (-1), ()."""


@pytest.mark.parametrize(
    ("given", "weights", "kept"),
    [
        ({}, [[1, 2], [math.exp(-1)], []], [[True, True], [True], []]),
        (
            {"truncate": None, "reject_above": 2.5, "reject_below": 0.3},
            [[1, 1], [1], []],
            [[True, False], [True], []],
        ),
        (
            {"reject_above": 2.5, "reject_below": 0.5},
            [[1, 2], [math.exp(-1)], []],
            [[True, False], [False], []],
        ),
        (
            {"level": "sequence", "truncate": 3.0, "reject_below": 0.5},
            [[math.e] * 2, [math.exp(-1)], []],
            [[True, True], [False], []],
        ),
        (
            {"level": "geometric", "truncate": 3.0, "reject_above": 1.6},
            [[math.exp(0.5)] * 2, [math.exp(-1)], []],
            [[False, False], [True], []],
        ),
    ],
)
def test_weights_and_rejections_by_their_definition(
    given: dict[str, Any], weights: list[list[float]], kept: list[list[bool]]
) -> None:
    found = importance_correction(TRAINER, SAMPLER, CorrectionSpec(**given))
    assert [len(row) for row in found.weights] == [2, 1, 0]
    for row, expected in zip(found.weights, weights, strict=True):
        assert row == pytest.approx(expected)
    assert found.kept == kept


def test_the_mismatch_is_measured_before_anything_is_cut() -> None:
    found = importance_correction(TRAINER, SAMPLER, CorrectionSpec(reject_below=0.5)).mismatch
    assert found.kl == pytest.approx((0 + (math.e - 2) + (math.exp(-1) + 1 - 1)) / 3)
    assert found.chi2 == pytest.approx((0 + math.exp(2) - 1 + math.exp(-2) - 1) / 3)
    assert found.largest_gap == 1.0
    assert (found.truncated, found.rejected) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_agreement_changes_nothing() -> None:
    found = importance_correction(SAMPLER, SAMPLER, CorrectionSpec(reject_above=1.1))
    assert found.weights == [[1, 1], [1], []]
    assert all(map(all, found.kept))
    assert (found.mismatch.kl, found.mismatch.chi2, found.mismatch.largest_gap) == (0, 0, 0)


def test_absurd_gaps_stay_finite() -> None:
    found = importance_correction(
        [[0.0, -900.0]], [[-900.0, 0.0]], CorrectionSpec(level="sequence")
    )
    assert all(map(math.isfinite, found.weights[0]))
    assert math.isfinite(found.mismatch.chi2)


def test_truncated_weights_take_most_of_the_bias_away() -> None:
    """Two actions: the sampler draws the first with 0.6, the trainer would with 0.5.

    The gradient of expected reward with respect to the first logit is p(1-p)(A1 - A2). Unweighted it
    is estimated with the sampler's frequencies, which is off by a known amount.
    """
    p, q, rewards = 0.5, 0.6, (1.0, 0.0)
    slopes = (1 - p, -p)  # of log-prob of each action with respect to the logit
    exact = sum(pi * r * s for pi, r, s in zip((p, 1 - p), rewards, slopes, strict=True))
    sampler = [[math.log(q)], [math.log(1 - q)]]
    trainer = [[math.log(p)], [math.log(1 - p)]]
    weights = importance_correction(trainer, sampler, CorrectionSpec(truncate=2.0)).weights
    chances = (q, 1 - q)
    plain = sum(c * r * s for c, r, s in zip(chances, rewards, slopes, strict=True))
    corrected = sum(
        c * w[0] * r * s for c, w, r, s in zip(chances, weights, rewards, slopes, strict=True)
    )
    assert abs(plain - exact) == pytest.approx(0.05)
    assert corrected == pytest.approx(exact)


def test_a_correction_that_corrects_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="corrects nothing"):
        CorrectionSpec(truncate=None)


@pytest.mark.parametrize(
    "bounds",
    [{"reject_above": 0.5, "reject_below": 0.5}, {"reject_below": 3.0}, {"reject_above": 1.0}],
)
def test_bounds_that_reject_where_sampler_and_trainer_agree_are_refused(
    bounds: dict[str, float],
) -> None:
    with pytest.raises(ValidationError, match="for w is 1 where sampler and trainer agree"):
        CorrectionSpec(**bounds)


def test_the_truncated_mean_is_never_above_the_bound() -> None:
    rng = random.Random(0)
    trainer = [[-rng.random() * 9 for _ in range(20)] for _ in range(20)]
    sampler = [[-rng.random() * 9 for _ in row] for row in trainer]
    for level in ("token", "sequence", "geometric"):
        spec = CorrectionSpec(level=level, truncate=1.5)
        weights = importance_correction(trainer, sampler, spec).weights
        assert max(map(max, weights)) == pytest.approx(1.5)
        assert min(map(min, weights)) > 0
