"""Drawing tokens by inverting the cumulative distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.policy.draw import draw, uniforms


def drawn(probabilities: list[float], temperature: float, number: float) -> tuple[int, float]:
    logits = torch.tensor([probabilities]).log()
    tokens, logprobs = draw(
        logits, torch.tensor([temperature]), torch.tensor([number], dtype=torch.float64)
    )
    return int(tokens[0]), float(logprobs[0])


@pytest.mark.parametrize(
    ("number", "token"), [(0.0, 0), (0.19, 0), (0.21, 1), (0.69, 1), (0.71, 2), (1 - 1e-16, 2)]
)
def test_numbers_fall_to_tokens_by_their_probabilities(number: float, token: int) -> None:
    assert drawn([0.2, 0.5, 0.3], 1.0, number)[0] == token


def test_an_impossible_token_is_never_drawn() -> None:
    assert drawn([0.0, 0.5, 0.5, 0.0], 1.0, 0.0)[0] == 1
    assert drawn([0.0, 0.5, 0.5, 0.0], 1.0, 1 - 1e-16)[0] == 2


def test_logprobs_are_those_of_the_distribution_drawn_from() -> None:
    halves = np.array([0.2, 0.5, 0.3]) ** 2  # temperature 1/2 squares probabilities
    token, logprob = drawn([0.2, 0.5, 0.3], 0.5, 0.9)
    assert token == 2
    assert logprob == pytest.approx(np.log(halves[2] / halves.sum()), abs=1e-6)
    assert drawn([0.2, 0.5, 0.3], 0.0, 0.9) == (1, pytest.approx(np.log(0.5), abs=1e-6))


def test_rows_keep_their_own_temperatures_and_numbers() -> None:
    logits = torch.tensor([[0.2, 0.5, 0.3]]).log().repeat(3, 1)
    numbers = torch.tensor([0.1, 0.9, 0.9], dtype=torch.float64)
    tokens, _ = draw(logits, torch.tensor([1.0, 0.0, 1.0]), numbers)
    assert tokens.tolist() == [0, 1, 2]


@given(st.integers(), st.integers(0, 20), st.integers(0, 20))
def test_numbers_depend_on_the_seed_alone(seed: int, short: int, more: int) -> None:
    few, many = uniforms(seed, short), uniforms(seed, short + more)
    assert np.array_equal(few, many[:short])
    assert ((many >= 0) & (many < 1)).all()
    assert not np.array_equal(uniforms(seed, 5), uniforms(seed + 1, 5))
