"""Several ranks come to the loss, the gradient and the weights of one (law L6)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import late_gloo
import pytest
import ranked_updates
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_kit import distance, tiny_model
from safetensors.torch import load_file
from torchrun import torchrun

from muarl.kernel.model import load_model, weights_checksum
from muarl.kernel.ranks import ALONE, Ranks
from muarl.record import Sample, Span

ROUNDING = 5e-6
SCRIPT = Path(ranked_updates.__file__)


@pytest.fixture(scope="module")
def by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    ranked_updates.main(ALONE, folder)
    return folder


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    code, said = torchrun(2, SCRIPT, folder)
    assert code == 0, said
    return folder


@pytest.fixture(scope="module")
def by_four(by_two: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks that take up the checkpoint of two."""
    folder = tmp_path_factory.mktemp("four")
    code, said = torchrun(4, SCRIPT, folder, by_two / "first")
    assert code == 0, said
    return folder


@pytest.fixture(params=["by_two", "by_four"])
def by_many(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue(request.param)
    return folder


def found(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return content


def test_L6_metrics_of_updates_are_those_of_one_rank(by_one: Path, by_many: Path) -> None:
    one, many = found(by_one), found(by_many)
    names = [f"{name}.{kind}" for name in ranked_updates.NAMES for kind in ("sft", "grpo")]
    for name in (*names, "few.grpo"):
        for part in (one[name], many[name]):
            part |= part.pop("mismatch", {})
        assert many[name] == pytest.approx(one[name], rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("name", ranked_updates.NAMES)
@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_L6_the_gradient_is_that_of_one_rank(
    name: str, kind: str, by_one: Path, by_many: Path
) -> None:
    one, many = (load_file(folder / f"{name}.{kind}.safetensors") for folder in (by_one, by_many))
    # Alone, experts that no token asked have no gradient; together they have one that is zero.
    for missing in many.keys() - one.keys():
        assert not many.pop(missing).any()
    assert distance(many, one) < ROUNDING


def test_a_checkpoint_of_two_ranks_is_taken_up_by_one_and_by_four(
    by_one: Path, by_two: Path, by_four: Path, tmp_path: Path
) -> None:
    ranked_updates.of_checkpoints(ALONE, tmp_path, by_two / "first")
    expected = dict(load_model(by_one / "second" / "000001").named_parameters())
    for folder in (by_two, by_four, tmp_path):
        weights = load_model(folder / "second" / "000001").named_parameters()
        for name, weight in weights:
            torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-5)
        state, one = (
            load_file(of / "second" / "000001" / "optimizer.safetensors") for of in (folder, by_one)
        )
        assert state.keys() == one.keys()
        for name, moment in state.items():
            torch.testing.assert_close(moment, one[name], rtol=1e-3, atol=1e-6)


def test_all_ranks_refuse_an_update_that_is_not_finite_for_one(by_many: Path) -> None:
    assert "weights are still those of update 0" in found(by_many)["refusal"]


def test_muon_moves_whole_matrices_whoever_has_which_share(by_one: Path, by_many: Path) -> None:
    # In bfloat16 a gradient that differs in its last bit may be rounded otherwise.
    assert found(by_many)["muon"] == pytest.approx(found(by_one)["muon"], rel=2e-3)


def test_a_model_in_pieces_is_saved_as_one_with_its_tied_weights_once(by_many: Path) -> None:
    assert weights_checksum(load_model(by_many / "tied")) == weights_checksum(tiny_model())
    assert "lm_head.weight" not in load_file(by_many / "tied" / "model.safetensors")


@given(
    lengths=st.lists(st.just(0) | st.integers(2, 60), max_size=30),
    size=st.integers(1, 6),
    seed=st.randoms(use_true_random=False),
)
def test_samples_are_shared_out_without_rest_and_about_evenly(
    lengths: list[int], size: int, seed: Any
) -> None:
    samples = [
        Sample([seed.randrange(9) for _ in range(n)], [Span(1, n, 0)], [0.0] * (n - 1))
        if n
        else Sample([], [], [])
        for n in lengths
    ]
    shares = [Ranks(rank, size).share(samples) for rank in range(size)]
    assert sorted(index for share in shares for index in share) == list(range(len(samples)))
    even = sum(lengths) / size
    assert all(sum(lengths[i] for i in share) <= even + max(lengths, default=0) for share in shares)


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux lets threads be held back")
def test_a_rank_whose_gloo_is_late_ends_well(tmp_path: Path) -> None:
    """It aborted in five of six such runs: "terminate called without an active exception"."""
    code, said = torchrun(2, Path(late_gloo.__file__), tmp_path)
    assert code == 0, said
