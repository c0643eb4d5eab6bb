from __future__ import annotations

import importlib.util
import math
import sys
from typing import Any

import pytest
import torch
from kernel_kit import TINY, tiny_model

from muarl.errors import SetupError
from muarl.kernel.model import build_tiny_model
from muarl.kernel.optimizer import adamw, cold_start_lr, grpo_lr, muon
from muarl.spec.grpo import GrpoSpec
from muarl.spec.model import ColdStartSpec


def rates(steps: int, **keys: Any) -> list[float]:
    spec = ColdStartSpec(**keys)
    return [cold_start_lr(step, spec, steps=steps) for step in range(steps)]


def test_the_cold_start_s_rate_warms_up_is_held_and_falls_to_a_twentieth() -> None:
    found = rates(700, lr=1e-2)
    assert found[0] == pytest.approx(1e-2 / 30)
    assert set(found[29:491]) == {1e-2}
    assert found[595] == pytest.approx(1e-2 / 2)
    assert found[-1] == pytest.approx(5e-4)
    assert found[:30] == sorted(found[:30])
    assert found[30:] == sorted(found[30:], reverse=True)


def test_a_short_cold_start_comes_to_its_peak_where_no_warm_up_is_said() -> None:
    for schedule in ("hold", "constant", "linear", "cosine"):
        assert rates(2, lr=3.0, schedule=schedule) == pytest.approx([1.5, 3.0])


def test_the_other_schedules_are_the_textbook_s() -> None:
    assert rates(5, lr=2.0, warmup_steps=0, schedule="constant") == [2.0] * 5
    assert rates(6, lr=1.0, warmup_steps=2, schedule="linear") == pytest.approx(
        [0.5, 1, 1, 0.75, 0.5, 0.25]
    )
    cosine = [0.5 * (1 + math.cos(math.pi * step / 4)) for step in range(4)]
    assert rates(4, lr=1.0, warmup_steps=0, schedule="cosine") == pytest.approx(cosine)
    assert rates(6, lr=1.0, warmup_steps=2, schedule="cosine") == pytest.approx([0.5, 1, *cosine])


def test_the_grpo_rate_falls_to_a_tenth_over_the_last_iterations() -> None:
    spec = GrpoSpec(iterations=10, lr=1.0, lr_decay_iterations=4)
    found = [grpo_lr(iteration, spec) for iteration in range(10)]
    assert found == pytest.approx([1, 1, 1, 1, 1, 1, 0.775, 0.55, 0.325, 0.1])
    shortened = GrpoSpec(iterations=4, lr=1.0, lr_decay_iterations=12)
    assert [grpo_lr(i, shortened) for i in range(4)] == pytest.approx([0.775, 0.55, 0.325, 0.1])
    constant = GrpoSpec(iterations=3, lr=0.5)
    assert [grpo_lr(iteration, constant) for iteration in range(3)] == [0.5] * 3


def test_muon_takes_the_body_s_matrices_and_adamw_the_rest() -> None:
    model = tiny_model()
    optimizer = muon(model)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step(0.01)
    owners = dict(key.rpartition("/")[0].split("/")[::-1] for key in optimizer.state())
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim == 2 and "embed" not in name
        assert owners.pop(name) == ("muon" if matrix else "adamw")
    assert not owners
    assert all(parameter.grad is None for parameter in model.parameters())


def test_adamw_is_the_textbook_s() -> None:
    model = tiny_model()
    optimizer = adamw(model, freeze_embeddings=True)
    parameter = model.base_model.norm.weight
    start, first, second = parameter.detach().double().clone(), 0.0, 0.0
    gradients = [torch.randn_like(parameter) for _ in range(3)]
    for count, gradient in enumerate(gradients, start=1):
        parameter.grad = gradient.clone()
        optimizer.step(0.01)
        first = 0.9 * first + 0.1 * gradient.double()
        second = 0.95 * second + 0.05 * gradient.double() ** 2
        scaled = (first / (1 - 0.9**count)) / ((second / (1 - 0.95**count)).sqrt() + 1e-8)
        start = start - 0.01 * scaled
    assert torch.allclose(parameter.double(), start, atol=1e-6)
    assert math.isfinite(parameter.sum().item())


def test_eight_bits_need_their_package_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(SetupError, match=r"kernel\.optimizer_bits: 8 needs bitsandbytes.*bits8"):
        adamw(tiny_model(), freeze_embeddings=False, bits=8)


@pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)
def test_eight_bits_hold_a_quarter_learn_alike_and_are_taken_up_again() -> None:
    wide = TINY.model_copy(update={"hidden_size": 128, "ffn_size": 256})
    exact, small = (build_tiny_model(wide, seed=0) for _ in range(2))
    ours = adamw(small, freeze_embeddings=False, bits=8)
    theirs = adamw(exact, freeze_embeddings=False)
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        for mine, other in zip(small.parameters(), exact.parameters(), strict=True):
            mine.grad = torch.randn(mine.shape, generator=draw)
            other.grad = mine.grad.clone()
        ours.step(1e-3)
        theirs.step(1e-3)
    bytes_of = [sum(t.nbytes for t in o.state().values()) for o in (ours, theirs)]
    assert bytes_of[0] < 0.35 * bytes_of[1]
    before = build_tiny_model(wide, seed=0)
    for start, mine, other in zip(
        before.parameters(), small.parameters(), exact.parameters(), strict=True
    ):
        assert (mine - other).norm() < 0.1 * (other - start).norm()

    again = build_tiny_model(wide, seed=0)
    again.load_state_dict(small.state_dict())
    resumed = adamw(again, freeze_embeddings=False, bits=8)
    resumed.load_state(ours.state())
    for mine, other in zip(small.parameters(), again.parameters(), strict=True):
        mine.grad = torch.randn(mine.shape, generator=draw)
        other.grad = mine.grad.clone()
    ours.step(1e-3)
    resumed.step(1e-3)
    for mine, other in zip(small.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_rate_that_warms_up_and_falls_along_a_cosine() -> None:
    spec = GrpoSpec(
        iterations=10,
        lr=1.0,
        lr_warmup_iterations=1,
        lr_decay_iterations=4,
        lr_decay="cosine",
        lr_end=0.0,
    )
    rates = [grpo_lr(iteration, spec) for iteration in range(10)]
    assert rates[:6] == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    half = math.sqrt(0.5)
    assert rates[6:] == pytest.approx([(1 + half) / 2, 0.5, (1 - half) / 2, 0.0])
