"""What of a run's spec may differ when it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muarl.errors import SetupError
from muarl.spec import RunSpec, load_spec
from muarl.train.run_folder import RunFolder

LLM = {"base_url": "http://a/v1", "model": "m"}


def spec(**changes: Any) -> RunSpec:
    base = {"version": 1, "domain": "d.yaml", "model": {"tiny": {}}, "grpo": {"iterations": 4}}
    return RunSpec.model_validate(base | changes)


def resumed(path: Path, before: RunSpec, now: RunSpec, iterations: int = 2) -> RunFolder:
    folder = RunFolder.create(path, before, resume=False, overwrite=False)
    for iteration in range(iterations):
        folder.log("iteration", iteration=iteration)
    return RunFolder.create(path, now, resume=True, overwrite=False)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {"threads": 3}),
        ({}, {"domain": "elsewhere/d.yaml"}),
        ({}, {"rollout": {"concurrency": 3, "deadline_s": 9, "attempts": 1, "max_fault_rate": 1}}),
        ({}, {"rollout": {"at_once": {"replies": None, "messages": 4}}}),
        (
            {"user": {"llm": LLM}},
            {"user": {"llm": LLM | {"base_url": "http://b/v1", "api_key_env": "KEY"}}},
        ),
        (
            {"user": {"pool": {"one": {"user": {"llm": LLM}}}}},
            {"user": {"pool": {"one": {"user": {"llm": LLM | {"timeout_s": 3}}}}}},
        ),
        (
            {"engine": {"vllm_server": {"endpoints": ["http://a:1"]}}},
            {"engine": {"vllm_server": {"endpoints": ["http://b:1", "http://c:1"]}}},
        ),
    ],
)
def test_how_a_run_is_carried_out_may_change_and_is_noted(
    before: dict[str, Any], now: dict[str, Any], tmp_path: Path
) -> None:
    folder = resumed(tmp_path / "run", spec(**before), spec(**now))
    assert folder.changed
    assert load_spec(folder.spec, RunSpec).spec == spec(**now)
    again = RunFolder.create(folder.path, spec(**now), resume=True, overwrite=False)
    assert again.changed == []


@pytest.mark.parametrize(
    "now",
    [
        {"seed": 3},
        {"rollout": {"max_turns": 3}},
        {"rollout": {"temperature": 0.5}},
        {"rollout": {"group_size": 2}},
        {"engine": "vllm"},
        {"model": {"tiny": {"num_layers": 1}}},
        {"user": {"llm": LLM}},
        {"grpo": {"iterations": 4, "lr": 3.0}},
        {"grpo": None},
        {"cold_start": {}},
        {"eval": {"episodes": 3}},
    ],
)
def test_what_is_played_and_learned_may_not(now: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="was run with another spec; cannot resume"):
        resumed(tmp_path / "run", spec(), spec(**now))
    assert load_spec(tmp_path / "run" / "spec.resolved.yaml", RunSpec).spec == spec()


def grpo(iterations: int, decay: int = 0) -> RunSpec:
    return spec(grpo={"iterations": iterations, "lr_decay_iterations": decay})


@pytest.mark.parametrize(
    ("before", "now", "made"),
    [
        (grpo(4), grpo(9), 2),
        (grpo(9), grpo(4), 2),
        (grpo(9), grpo(3), 2),
        (grpo(9, decay=5), grpo(12, decay=5), 3),
        (grpo(4, decay=4), grpo(9, decay=4), 0),
    ],
)
def test_iterations_to_come_may_be_more_or_fewer(
    before: RunSpec, now: RunSpec, made: int, tmp_path: Path
) -> None:
    folder = resumed(tmp_path / "run", before, now, made)
    assert [change.partition(":")[0] for change in folder.changed] == ["grpo.iterations"]


@pytest.mark.parametrize(
    ("before", "now", "made", "why"),
    [
        (grpo(4), grpo(9), 4, "all were made, and what came of them was evaluated"),
        (grpo(9), grpo(2), 2, "2 were made"),
        (grpo(9, decay=5), grpo(12, decay=5), 4, "since lr_decay_iterations is 5"),
        (grpo(12, decay=5), grpo(9, decay=5), 4, "since lr_decay_iterations is 5"),
    ],
)
def test_but_not_if_those_made_would_not_have_been_the_same(
    before: RunSpec, now: RunSpec, made: int, why: str, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match=why):
        resumed(tmp_path / "run", before, now, made)
