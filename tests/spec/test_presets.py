"""Presets: each loads over any run, and says what its source says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muarl.errors import SpecError
from muarl.spec import GrpoSpec, RunSpec, load_run
from muarl.spec.presets import presets

QUICKSTART = Path(__file__).resolve().parents[2] / "specs" / "quickstart.yaml"

# All pieces of an algorithm that a run below may have set otherwise.
OTHER = [
    "grpo.baseline=none",
    "grpo.ratio=sequence",
    "grpo.dual_clip=9",
    "grpo.clip_high=0.9",
    "grpo.aggregation=constant",
    "grpo.aggregation_tokens=9",
    "grpo.kl_coef=0.5",
]

MUA_RL: dict[str, Any] = {  # mua-rl.md, section 1.7
    "group_size": 8,
    "temperature": 1.0,
    "max_turns": 30,
    "max_tokens": 1024,
    "context_tokens": 32768,
}
MUA_RL_GRPO: dict[str, Any] = {
    "tasks_per_iteration": 32,
    "updates_per_iteration": 1,
    "lr": 1e-6,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "baseline": "std",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "kl_coef": 0.001,
    "kl_estimator": "k3",
    "kl_in": "loss",
    "entropy_coef": 0.0,
    "dynamic_sampling": None,
    "overlong": None,
    "correction": None,
}
MUA_RL_COLD_START: dict[str, Any] = {
    "epochs": 2,
    "steps": None,
    "dialogues_per_step": 128,
    "tokens_per_step": None,
    "optimizer": "adamw",
    "lr": 5e-6,
    "schedule": "cosine",
}
EXPECTED: dict[str, dict[str, Any]] = {
    "mua-rl-paper": {**MUA_RL_GRPO, "iterations": 25 * (165 // 32), "ratio": "sequence"},
    "mua-rl-repo": {
        **MUA_RL_GRPO,
        "iterations": 30 * (165 // 32),
        "ratio": "token",
        "aggregation": "token",
        "dual_clip": 3.0,
        "kl_max": 10.0,
    },
    "dapo": {"clip_low": 0.2, "clip_high": 0.28, "aggregation": "token", "kl_coef": 0.0},
    "dr-grpo": {"baseline": "mean", "aggregation": "constant", "kl_coef": 0.0},
    "gspo": {"ratio": "sequence", "clip_low": 3e-4, "clip_high": 4e-4, "kl_coef": 0.0},
}


def laid(name: str, *settings: str) -> RunSpec:
    return load_run(QUICKSTART, f"preset:{name}", settings=settings).spec


def grpo_of(run: RunSpec) -> GrpoSpec:
    assert run.grpo is not None
    return run.grpo


def test_there_are_the_presets_that_are_tested() -> None:
    assert presets().keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_preset_says_what_its_source_says(name: str) -> None:
    grpo = grpo_of(laid(name))
    assert {key: getattr(grpo, key) for key in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.parametrize(("name", "episodes"), [("mua-rl-paper", 2000), ("mua-rl-repo", 1580)])
def test_the_paper_s_recipe_sets_cold_start_dialogues_and_evaluation_too(
    name: str, episodes: int
) -> None:
    run = laid(name)
    cold_start = run.cold_start
    assert cold_start is not None
    found = {key: getattr(cold_start, key) for key in MUA_RL_COLD_START}
    assert found == MUA_RL_COLD_START
    assert cold_start.episodes == episodes
    assert {key: getattr(run.rollout, key) for key in MUA_RL} == MUA_RL
    assert run.eval.temperatures == [0.0]


@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_of_another_algorithm_remains_below_a_preset(name: str, tmp_path: Path) -> None:
    lines = ["version: 1", "grpo:", *(f"  {s.removeprefix('grpo.')}" for s in OTHER)]
    other = tmp_path / "other.yaml"
    other.write_text("\n".join(lines).replace("=", ": ") + "\n")
    over = grpo_of(load_run(QUICKSTART, other, f"preset:{name}").spec)
    plain = grpo_of(laid(name))
    for setting in OTHER:
        key = setting.removeprefix("grpo.").partition("=")[0]
        assert getattr(over, key) == getattr(plain, key), key


def test_what_is_laid_over_a_preset_counts() -> None:
    assert grpo_of(laid("gspo", "grpo.clip_high=0.01")).clip_high == 0.01
    assert grpo_of(laid("mua-rl-repo", "grpo.dual_clip=null")).dual_clip is None


def test_an_unknown_preset_is_named_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="no preset 'gsop'; did you mean 'gspo'"):
        laid("gsop")
    with pytest.raises(SpecError, match="there are dapo, dr-grpo, gspo"):
        laid("zzz")
