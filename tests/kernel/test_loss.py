"""The losses against a plain Python reference in double precision."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from muarl.kernel.loss import LossTotals, TokenTerms, grpo_loss, sft_loss
from muarl.spec import GrpoSpec

LONG = 50
PIECES: dict[str, dict[str, Any]] = {
    "plain": {},
    "symmetric": {"clip_high": 0.2},
    "dual clip": {"dual_clip": 1.5},
    "cispo": {"surrogate": "cispo"},
    "sequence": {"ratio": "sequence", "clip_low": 0.03, "clip_high": 0.04},
    "k1": {"kl_coef": 0.3, "kl_estimator": "k1"},
    "k2": {"kl_coef": 0.3, "kl_estimator": "k2"},
    "k3": {"kl_coef": 0.3},
    "k3 held": {"kl_coef": 0.3, "kl_max": 0.05},
    "entropy": {"entropy_coef": 0.1},
    "importance": {},
    "all": {
        "ratio": "sequence",
        "clip_low": 0.03,
        "clip_high": 0.04,
        "dual_clip": 1.02,
        "kl_coef": 0.3,
        "kl_estimator": "k2",
        "entropy_coef": 0.1,
    },
}


class Token(NamedTuple):
    """One sampled token, in doubles."""

    owner: int
    trainer: float
    old: float
    advantage: float
    reference: float
    entropy: float
    share: float
    importance: float


def tokens(count: int = LONG, seed: int = 0, gap: float = 0.4) -> list[Token]:
    rng = random.Random(seed)
    found = []
    for number in range(count):
        old = -rng.random() * 5
        found.append(
            Token(
                owner=number // 5,
                trainer=old + rng.gauss(0, gap),
                old=old,
                advantage=rng.gauss(0, 1),
                reference=old + rng.gauss(0, 0.4),
                entropy=rng.random(),
                share=rng.choice([0.0, 1 / 77, 1 / 50]),
                importance=rng.uniform(0.5, 2.0),
            )
        )
    return found


def reference_loss(rows: list[Token], spec: GrpoSpec, trainer: list[float], weigh: bool) -> float:
    """The loss by its definition, in plain Python; CISPO's has no value but a slope, see below."""
    total = 0.0
    for number, row in enumerate(rows):
        own = [i for i, other in enumerate(rows) if other.owner == row.owner and other.share]
        members = own if spec.ratio == "sequence" else [number]
        ratio = math.exp(sum(trainer[i] - rows[i].old for i in members) / max(1, len(members)))
        cut = min(max(ratio, 1 - spec.clip_low), 1 + spec.clip_high)
        if spec.surrogate == "cispo":
            frozen = math.exp(row.trainer - row.old)  # a constant: no slope goes through it
            frozen = min(max(frozen, 1 - spec.clip_low), 1 + spec.clip_high)
            loss = -frozen * row.advantage * trainer[number]
        else:
            loss = -min(ratio * row.advantage, cut * row.advantage)
            if spec.dual_clip and row.advantage < 0:
                loss = min(loss, -spec.dual_clip * row.advantage)
        if weigh:
            loss *= row.importance
        gap = row.reference - trainer[number]
        kl = {"k1": -gap, "k2": gap * gap / 2, "k3": math.exp(gap) - gap - 1}[spec.kl_estimator]
        if spec.kl_max:
            kl = max(-spec.kl_max, min(spec.kl_max, kl))
        total += row.share * (loss + spec.kl_coef * kl - spec.entropy_coef * row.entropy)
    return total


def run(
    rows: list[Token], spec: GrpoSpec, weigh: bool = False
) -> tuple[Tensor, Tensor, LossTotals]:
    def column(name: str) -> Tensor:
        return torch.tensor([getattr(row, name) for row in rows], dtype=torch.float64)

    trainer = column("trainer").requires_grad_()
    terms = TokenTerms(
        old_logprobs=column("old"),
        advantages=column("advantage"),
        shares=column("share"),
        importance=column("importance") if weigh else None,
        reference_logprobs=column("reference") if spec.kl_coef else None,
    )
    first = rows[0].owner
    owners = torch.tensor([row.owner - first for row in rows])
    loss, totals = grpo_loss(trainer, column("entropy"), terms, owners, spec)
    (slopes,) = torch.autograd.grad(loss, trainer)
    return loss.detach(), slopes, totals


@pytest.mark.parametrize("name", PIECES)
def test_loss_and_slope_of_each_piece_are_the_reference_s(name: str) -> None:
    spec, weigh, step = GrpoSpec(**PIECES[name]), name in ("importance", "all"), 1e-6
    rows = tokens()
    loss, slopes, _ = run(rows, spec, weigh)
    trainer = [row.trainer for row in rows]
    assert loss.item() == pytest.approx(reference_loss(rows, spec, trainer, weigh), rel=1e-9)
    expected = []
    for number in range(len(rows)):
        up, down = trainer.copy(), trainer.copy()
        up[number] += step
        down[number] -= step
        rise = reference_loss(rows, spec, up, weigh) - reference_loss(rows, spec, down, weigh)
        expected.append(rise / (2 * step))
    assert slopes.tolist() == pytest.approx(expected, abs=1e-8)
    plain, _, _ = run(rows, GrpoSpec())
    assert name == "plain" or loss.item() != pytest.approx(plain.item()), "the piece does nothing"


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
    row = Token(0, trainer, -1.0, advantage, 0.0, 0.0, 1.0, 1.0)
    found, slopes, _ = run([row], GrpoSpec())
    assert found.item() == pytest.approx(loss)
    assert slopes.item() == pytest.approx(slope, abs=1e-12)


def test_a_rejected_token_neither_moves_nor_is_moved_by_the_ratio_of_its_sample() -> None:
    spec = GrpoSpec(ratio="sequence", clip_low=0.5, clip_high=0.5)
    kept = [
        Token(0, -0.9, -1.0, 1.0, 0.0, 0.0, 0.5, 1.0),
        Token(0, -0.7, -1.0, 1.0, 0.0, 0.0, 0.5, 1.0),
    ]
    rejected = Token(0, -0.1, -9.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    alone, slopes, _ = run(kept, spec)
    beside, slopes_beside, _ = run([*kept, rejected], spec)
    assert alone.item() == pytest.approx(-math.exp(0.2))
    assert beside.item() == pytest.approx(alone.item())
    assert slopes_beside.tolist() == pytest.approx([*slopes.tolist(), 0.0])


def test_totals_count_what_happened() -> None:
    rows = [
        Token(0, -0.5, -1.0, 2.0, -1.0, 0.5, 0.25, 1.0),
        Token(0, -0.5, -1.0, -2.0, -0.5, 0.5, 0.25, 1.0),
        Token(1, -1.5, -1.0, -2.0, -1.5, 0.5, 0.25, 1.0),
        Token(1, -1.0, -1.0, 1.0, -1.0, 0.5, 0.25, 1.0),
    ]
    _, _, totals = run(rows, GrpoSpec(kl_coef=0.1))
    assert (totals.num_tokens, totals.clipped_low, totals.clipped_high) == (4, 1, 1)
    assert totals.ratio == pytest.approx(2 * math.exp(0.5) + math.exp(-0.5) + 1)
    assert totals.ratio_max == pytest.approx(math.exp(0.5))
    assert totals.logprob_gap_max == pytest.approx(0.5)
    assert totals.entropy == pytest.approx(2.0)
    assert totals.kl == pytest.approx(math.exp(-0.5) + 0.5 - 1)


def test_totals_are_of_the_tokens_that_count() -> None:
    kept = Token(0, -0.5, -1.0, 2.0, -1.0, 0.5, 1.0, 1.0)
    rejected = Token(0, -0.1, -9.0, 1.0, -3.0, 2.0, 0.0, 1.0)
    spec = GrpoSpec(kl_coef=0.1)
    assert run([kept, rejected], spec)[2] == run([kept], spec)[2]
    assert run([rejected], spec)[2] == LossTotals()


@given(st.integers(1, LONG // 5 - 1), st.sampled_from(list(PIECES)))
def test_parts_add_up_to_the_whole(cut: int, name: str) -> None:
    spec, rows = GrpoSpec(**PIECES[name]), tokens(seed=3)
    whole_loss, whole_slopes, whole = run(rows, spec)
    first, second = run(rows[: 5 * cut], spec), run(rows[5 * cut :], spec)  # samples stay whole
    assert (first[0] + second[0]).item() == pytest.approx(whole_loss.item())
    assert torch.allclose(torch.cat([first[1], second[1]]), whole_slopes)
    merged = LossTotals()
    merged.merge(first[2])
    merged.merge(second[2])
    for field in LossTotals.__slots__:
        assert getattr(merged, field) == pytest.approx(getattr(whole, field)), field


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("advantage", [-1.0, 1.0])
@pytest.mark.parametrize("gap", [-500.0, 500.0])
def test_absurd_ratios_stay_finite(gap: float, advantage: float, name: str) -> None:
    row = Token(0, -1000.0 + gap, -1000.0, advantage, -1000.0, 0.5, 1.0, 1.0)
    loss, slopes, totals = run([row], GrpoSpec(**PIECES[name]))
    assert torch.isfinite(loss)
    assert torch.isfinite(slopes).all()
    assert totals.logprob_gap_max == pytest.approx(500.0)


@pytest.mark.parametrize("name", ["plain", "sequence", "cispo", "dual clip"])
def test_on_policy_every_surrogate_has_the_slope_of_the_policy_gradient(name: str) -> None:
    rows = [row._replace(trainer=row.old, share=1.0) for row in tokens()]
    advantages = {row.owner: row.advantage for row in rows}  # one a sample, as outcomes give
    rows = [row._replace(advantage=advantages[row.owner]) for row in rows]
    _, slopes, totals = run(rows, GrpoSpec(**PIECES[name]))
    assert slopes.tolist() == pytest.approx([-row.advantage for row in rows])
    assert totals.ratio == pytest.approx(len(rows))


def test_cross_entropy_divides_by_the_given_count() -> None:
    trainer = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64, requires_grad=True)
    loss = sft_loss(trainer, num_tokens=7)
    assert loss.item() == pytest.approx(3.5 / 7)
    assert torch.autograd.grad(loss, trainer)[0].tolist() == pytest.approx([-1 / 7] * 3)
