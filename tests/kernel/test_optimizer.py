from __future__ import annotations

import math

import pytest
import torch
from kernel_kit import tiny_model

from muarl.kernel.optimizer import adamw, cold_start_lr, grpo_lr, muon
from muarl.spec.run import GrpoSpec


def test_the_cold_start_s_rate_warms_up_is_held_and_falls_to_a_twentieth() -> None:
    rates = [cold_start_lr(step, steps=700, peak=1e-2) for step in range(700)]
    assert rates[0] == pytest.approx(1e-2 / 30)
    assert set(rates[29:491]) == {1e-2}
    assert rates[595] == pytest.approx(1e-2 / 2)
    assert rates[-1] == pytest.approx(5e-4)
    assert rates[:30] == sorted(rates[:30])
    assert rates[30:] == sorted(rates[30:], reverse=True)


def test_a_cold_start_shorter_than_its_warm_up_is_no_trouble() -> None:
    assert [cold_start_lr(step, steps=2, peak=3.0) for step in range(2)] == pytest.approx(
        [0.1, 0.2]
    )


def test_the_grpo_rate_falls_to_a_tenth_over_the_last_iterations() -> None:
    spec = GrpoSpec(iterations=10, lr=1.0, lr_decay_iterations=4)
    rates = [grpo_lr(iteration, spec) for iteration in range(10)]
    assert rates == pytest.approx([1, 1, 1, 1, 1, 1, 0.775, 0.55, 0.325, 0.1])
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
