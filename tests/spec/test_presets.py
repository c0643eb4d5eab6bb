"""Presets: each loads over any run, and says what its source says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from muarl.errors import SpecError
from muarl.spec import GrpoSpec, RunSpec, load_run
from muarl.spec.base import Spec
from muarl.spec.model import ColdStartSpec
from muarl.spec.presets import presets
from muarl.spec.run import EvalSpec, RolloutSpec

QUICKSTART = Path(__file__).resolve().parents[2] / "specs" / "quickstart.yaml"

GRPO_DOC = Path(__file__).resolve().parents[2] / "docs" / "grpo.md"

ALGORITHMS = ("dapo", "dr-grpo", "gspo")
# What a preset leaves to the run: which tasks and dialogues, what is measured, and when there is an alarm.
OF_THE_RUN: dict[str, set[str]] = {
    "grpo": {"split", "max_mismatch", "max_skipped"},
    "cold_start": {"split", "imperfections", "user", "file", "verify"},
    "rollout": set(RolloutSpec.model_fields)
    - {"group_size", "temperature", "top_p", "max_turns", "max_tokens", "context_tokens"},
    "eval": {"split", "episodes", "user", "perturb"},
}
# And an algorithm, which is no recipe, besides: how long and how fast.
OF_A_RECIPE = {
    *(
        "iterations",
        "tasks_per_iteration",
        "updates_per_iteration",
        "validation",
        "freeze_embeddings",
    ),
    *("lr", "lr_warmup_iterations", "lr_decay_iterations", "lr_decay", "lr_end"),
    *("weight_decay", "max_grad_norm"),
}
MODELS: dict[str, type[Spec]] = {
    "grpo": GrpoSpec,
    "cold_start": ColdStartSpec,
    "rollout": RolloutSpec,
    "eval": EvalSpec,
}


def owned(name: str) -> dict[str, list[str]]:
    """Section to the keys that a preset decides, whatever lies below."""
    if name in ALGORITHMS:
        return {"grpo": sorted(GrpoSpec.model_fields.keys() - OF_THE_RUN["grpo"] - OF_A_RECIPE)}
    return {
        part: sorted(model.model_fields.keys() - OF_THE_RUN[part]) for part, model in MODELS.items()
    }


# Of each key something that no preset says, as a file below may.
ELSEWHERE: dict[str, dict[str, list[Any]]] = {
    "grpo": {
        "mode": ["one_step_off", {"asynchronous": {"max_lag": 7}}],
        "iterations": [7],
        "tasks_per_iteration": [7],
        "updates_per_iteration": [7],
        "curriculum": [{"half": {"sharpness": 7.0}}, {"horizon": {}}],
        "lr": [0.7],
        "lr_warmup_iterations": [7],
        "lr_decay_iterations": [7],
        "lr_decay": ["cosine"],
        "lr_end": [0.7],
        "weight_decay": [0.7],
        "max_grad_norm": [0.7],
        "freeze_embeddings": [True],
        "baseline": ["none", "leave_one_out", "population_std"],
        "credit": [{"gigpo": {"weight": 0.7}}, {"outcome": {}}, {"checklist": {"level": "turn"}}],
        "shuffled_credit": [True],
        "ratio": ["token", "sequence"],
        "clip_low": [0.7],
        "clip_high": [0.7],
        "dual_clip": [7.0],
        "surrogate": ["cispo"],
        "aggregation": ["constant", "sequence"],
        "aggregation_tokens": [7],
        "kl_coef": [0.7],
        "kl_estimator": ["k1", "k2"],
        "kl_in": ["reward"],
        "kl_max": [0.7],
        "entropy_coef": [0.7],
        "correction": [{"truncate": 7.0}, {"reject_above": 7.0}],
        "dynamic_sampling": [{"max_rounds": 7}, {}],
        "overlong": [{"max_tokens": 7, "buffer_tokens": 7, "penalty": 7.0}, {"penalty": 0.7}],
        "drop": [["truncated"], ["void_turns"]],
        "validation": [{"split": "dev", "patience": 7}],
    },
    "cold_start": {
        "episodes": [7],
        "steps": [7],
        "epochs": [7.0],
        "tokens_per_step": [7],
        "dialogues_per_step": [7],
        "optimizer": ["muon"],
        "lr": [0.7],
        "warmup_steps": [7],
        "schedule": ["hold", "linear"],
        "weight_decay": [0.7],
        "held_out": [0.7],
    },
    "rollout": {
        "group_size": [7],
        "temperature": [0.7],
        "top_p": [0.7],
        "max_turns": [7],
        "max_tokens": [7],
        "context_tokens": [7],
    },
    "eval": {"temperatures": [[0.7, 0.0]], "trials": [7]},
}

MUA_RL: dict[str, Any] = {  # mua-rl.md, section 1.7
    "group_size": 8,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_turns": 30,
    "max_tokens": 1024,
    "context_tokens": 32768,
}
MUA_RL_GRPO: dict[str, Any] = {
    "tasks_per_iteration": 32,
    "updates_per_iteration": 1,
    "curriculum": None,
    "lr": 1e-6,
    "lr_warmup_iterations": 0,
    "lr_decay_iterations": 0,
    "freeze_embeddings": False,
    "validation": None,
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


def laid(name: str, *over: str) -> RunSpec:
    return load_run(QUICKSTART, f"preset:{name}", settings=over).spec


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
    assert run.eval.trials == (4 if name == "mua-rl-paper" else 1)


def whole(part: str) -> st.SearchStrategy[dict[str, Any]]:
    """Some of a section's keys, each with a value that is not the preset's."""
    keys = {key: st.sampled_from(values) for key, values in ELSEWHERE[part].items()}
    return st.fixed_dictionaries({}, optional=keys)


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("below") / "below.yaml"


def test_whatever_a_preset_owns_is_said_of_a_file_below_in_these_tests() -> None:
    for part, keys in owned("mua-rl-paper").items():
        assert sorted(ELSEWHERE[part]) == keys


@pytest.mark.parametrize("name", EXPECTED)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_nothing_of_what_lies_below_remains_in_what_a_preset_owns(
    name: str, data: st.DataObject, below: Path
) -> None:
    keys = owned(name)
    parts = {
        part: {key: value for key, value in data.draw(whole(part)).items() if key in of}
        for part, of in keys.items()
    }
    below.write_text(json.dumps({"version": 1, **parts}))
    over = load_run(QUICKSTART, below, f"preset:{name}").spec
    plain = laid(name)
    for part, of in keys.items():
        for key in of:
            found = getattr(getattr(over, part), key)
            assert found == getattr(getattr(plain, part), key), f"{part}.{key}"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_preset_names_what_it_owns_and_nothing_else(name: str) -> None:
    text = YAML(typ="safe").load(presets()[name])
    named = {part: sorted(keys) for part, keys in text.items() if part != "version"}
    assert named == owned(name)


def test_the_page_says_row_by_row_what_presets_own() -> None:
    page = GRPO_DOC.read_text(encoding="utf-8").partition("## Presets")[2]
    said = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", page))
    for part, keys in owned("mua-rl-paper").items():
        pieces = set(owned("dapo")["grpo"]) if part == "grpo" else set()
        for key in set(keys) - pieces:
            assert f"{part}.{key}" in said


def test_only_all_of_the_distribution_is_sampled_from() -> None:
    assert load_run(QUICKSTART, settings=["rollout.top_p=1"]).spec.rollout.top_p == 1
    with pytest.raises(SpecError, match=r"'top_p': only 1 goes, got 0\.9: .*lower the temperature"):
        load_run(QUICKSTART, settings=["rollout.top_p=0.9"])


def test_what_is_laid_over_a_preset_counts() -> None:
    assert grpo_of(laid("gspo", "grpo.clip_high=0.01")).clip_high == 0.01
    assert grpo_of(laid("mua-rl-repo", "grpo.dual_clip=null")).dual_clip is None


def test_an_unknown_preset_is_named_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="no preset 'gsop'; did you mean 'gspo'"):
        laid("gsop")
    with pytest.raises(SpecError, match="there are dapo, dr-grpo, gspo"):
        laid("zzz")
