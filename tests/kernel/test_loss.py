"""The losses against a plain Python reference in double precision."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from muarl.kernel.loss import LossTotals, grpo_loss, sft_loss

LOW, HIGH = 0.2, 0.28
LONG = 50


def reference_token(
    trainer: float, sampler: float, advantage: float, reference: float, kl_coef: float
) -> tuple[float, float]:
    """Loss of one token and its slope with respect to the trainer's log-prob."""
    ratio = math.exp(trainer - sampler)
    cut = min(max(ratio, 1 - LOW), 1 + HIGH)
    surrogate = min(ratio * advantage, cut * advantage)
    stopped = (ratio > 1 + HIGH and advantage > 0) or (ratio < 1 - LOW and advantage < 0)
    k3 = math.exp(reference - trainer) - (reference - trainer) - 1
    slope = 0.0 if stopped else -ratio * advantage
    return -surrogate + kl_coef * k3, slope + kl_coef * (1 - math.exp(reference - trainer))


def tokens(count: int, seed: int = 0) -> list[tuple[float, float, float, float]]:
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        sampler = -rng.random() * 5
        rows.append(
            (sampler + rng.gauss(0, 0.4), sampler, rng.gauss(0, 1), sampler + rng.gauss(0, 0.4))
        )
    return rows


def columns(rows: list[tuple[float, float, float, float]]) -> list[Tensor]:
    return [torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True)]


def run(
    rows: list[tuple[float, float, float, float]], num_tokens: int, kl_coef: float
) -> tuple[Tensor, Tensor, LossTotals]:
    trainer, sampler, advantages, reference = columns(rows)
    trainer.requires_grad_()
    loss, totals = grpo_loss(
        trainer,
        sampler,
        advantages,
        torch.full_like(advantages, 0.5),
        num_tokens=num_tokens,
        clip_low=LOW,
        clip_high=HIGH,
        kl_coef=kl_coef,
        reference_logprobs=reference if kl_coef else None,
    )
    (slopes,) = torch.autograd.grad(loss, trainer)
    return loss.detach(), slopes, totals


@pytest.mark.parametrize("kl_coef", [0.0, 0.3])
def test_loss_and_slope_are_the_reference_s(kl_coef: float) -> None:
    rows = tokens(LONG)
    loss, slopes, _ = run(rows, num_tokens=77, kl_coef=kl_coef)
    expected = [reference_token(*row, kl_coef) for row in rows]
    assert loss.item() == pytest.approx(sum(value for value, _ in expected) / 77, rel=1e-9)
    assert slopes.tolist() == pytest.approx([slope / 77 for _, slope in expected], rel=1e-9)


@pytest.mark.parametrize(
    ("trainer", "advantage", "loss", "slope"),
    [
        (-0.5, 2.0, -2 * 1.28, 0.0),  # ratio 1.649, cut from above: earns no more
        (-0.5, -2.0, 2 * math.exp(0.5), 2 * math.exp(0.5)),  # the same, but to be undone
        (-1.5, -2.0, 2 * 0.8, 0.0),  # ratio 0.607, cut from below
        (-1.5, 2.0, -2 * math.exp(-0.5), -2 * math.exp(-0.5)),
        (-1.0, 2.0, -2.0, -2.0),  # on policy
    ],
)
def test_clipping_stops_only_gains(
    trainer: float, advantage: float, loss: float, slope: float
) -> None:
    found, slopes, _ = run([(trainer, -1.0, advantage, 0.0)], num_tokens=1, kl_coef=0.0)
    assert found.item() == pytest.approx(loss)
    assert slopes.item() == pytest.approx(slope, abs=1e-12)


def test_totals_count_what_happened() -> None:
    rows = [
        (-0.5, -1.0, 2.0, -1.0),
        (-0.5, -1.0, -2.0, -0.5),
        (-1.5, -1.0, -2.0, -1.5),
        (-1.0, -1.0, 1.0, -1.0),
    ]
    _, _, totals = run(rows, num_tokens=4, kl_coef=0.1)
    assert (totals.num_tokens, totals.clipped_low, totals.clipped_high) == (4, 1, 1)
    assert totals.ratio == pytest.approx(2 * math.exp(0.5) + math.exp(-0.5) + 1)
    assert totals.ratio_max == pytest.approx(math.exp(0.5))
    assert totals.logprob_gap_max == pytest.approx(0.5)
    assert totals.entropy == pytest.approx(2.0)
    assert totals.kl == pytest.approx(math.exp(-0.5) + 0.5 - 1)


@given(st.integers(1, LONG - 1), st.sampled_from([0.0, 0.2]))
def test_parts_add_up_to_the_whole(cut: int, kl_coef: float) -> None:
    rows = tokens(LONG, seed=3)
    whole_loss, whole_slopes, whole = run(rows, LONG, kl_coef)
    first, second = run(rows[:cut], LONG, kl_coef), run(rows[cut:], LONG, kl_coef)
    assert (first[0] + second[0]).item() == pytest.approx(whole_loss.item())
    assert torch.allclose(torch.cat([first[1], second[1]]), whole_slopes)
    merged = LossTotals()
    merged.merge(first[2])
    merged.merge(second[2])
    for name in LossTotals.__slots__:
        assert getattr(merged, name) == pytest.approx(getattr(whole, name)), name


@pytest.mark.parametrize("advantage", [-1.0, 1.0])
@pytest.mark.parametrize("gap", [-500.0, 500.0])
def test_absurd_ratios_stay_finite(gap: float, advantage: float) -> None:
    row = (-1000.0 + gap, -1000.0, advantage, -1000.0)
    loss, slopes, totals = run([row], num_tokens=1, kl_coef=0.1)
    assert torch.isfinite(loss)
    assert torch.isfinite(slopes).all()
    assert totals.logprob_gap_max == pytest.approx(500.0)


def test_cross_entropy_divides_by_the_given_count() -> None:
    trainer = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64, requires_grad=True)
    loss = sft_loss(trainer, num_tokens=7)
    assert loss.item() == pytest.approx(3.5 / 7)
    assert torch.autograd.grad(loss, trainer)[0].tolist() == pytest.approx([-1 / 7] * 3)
