"""The paper's runs, as `--dry-run` reads them: without weights and without data."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from muarl.cli import main
from muarl.spec import load_run

SPECS = Path(__file__).parents[2] / "specs" / "mua-rl"
SIZES = ("8b", "14b", "32b")
RUNS = [*(f"{s}-{kind}" for s in SIZES for kind in ("cold-start", "grpo", "eval"))]


def run(name: str):
    return load_run(SPECS / f"{name}.yaml", without_weights=True).spec


@pytest.mark.parametrize("name", [*RUNS, "mua-rl-as-released"])
def test_a_dry_run_resolves_it_and_says_what_is_missing(name, capsys, monkeypatch) -> None:
    for variable in ("QWEN3_8B", "QWEN3_14B", "QWEN3_32B"):
        monkeypatch.delenv(variable, raising=False)
    verb = "eval" if name.endswith("eval") else "train"
    assert main([verb, str(SPECS / f"{name}.yaml"), "--dry-run"]) == 0
    said = capsys.readouterr()
    assert YAML(typ="safe").load(said.out)["base"] == []
    assert "not here yet: model.path" in said.err
    assert ("not here yet: cold_start.file" in said.err) is name.endswith("cold-start")


@pytest.mark.parametrize("size", SIZES)
def test_the_settings_are_the_papers(size: str) -> None:
    cold, grpo = run(f"{size}-cold-start"), run(f"{size}-grpo")
    start = cold.cold_start
    assert start is not None
    assert (start.episodes, start.epochs, start.dialogues_per_step) == (2000, 2, 128)
    assert (start.optimizer, start.lr, start.schedule) == ("adamw", 5e-6, "cosine")
    assert cold.grpo is None
    spec = grpo.grpo
    assert spec is not None
    assert grpo.cold_start is None
    assert (spec.tasks_per_iteration, grpo.rollout.group_size, spec.iterations) == (32, 8, 125)
    assert spec.updates_per_iteration == 1
    assert (spec.lr, spec.weight_decay, spec.max_grad_norm) == (1e-6, 0.01, 1.0)
    assert (spec.kl_coef, spec.kl_in, spec.kl_estimator, spec.entropy_coef) == (
        *(0.001, "loss", "k3", 0.0),
    )
    assert (spec.clip_low, spec.clip_high, spec.baseline) == (0.2, 0.2, "std")
    limits = grpo.rollout
    assert (limits.max_turns, limits.max_tokens, limits.context_tokens) == (30, 1024, 32768)
    assert limits.temperature == 1.0
    user = grpo.user.simulator
    assert user is not None
    assert (user.llm.model, user.llm.temperature, user.llm.max_tokens) == (
        *("gpt-4o-2024-11-20", 0.0, 4096),
    )


@pytest.mark.parametrize("size", SIZES)
def test_the_table_is_played_greedily_four_times_with_the_papers_user(size: str) -> None:
    spec = run(f"{size}-eval")
    assert spec.eval.temperatures == [0.0]
    # 115 and 50 of TAU1; 114, 50 and 114 of TAU2; 800 of BFCL; 50 of ACEBench in English.
    assert spec.eval.episodes == 115 + 50 + 114 + 50 + 114 + 800 + 50
    assert spec.eval.trials == 4
    assert spec.user.simulator is not None
    assert spec.user.simulator.llm.model == "gpt-4.1"


def test_the_released_recipe_says_why_it_is_evaluated_on_what_it_trains_on() -> None:
    spec = run("mua-rl-as-released")
    assert spec.grpo is not None
    assert (spec.grpo.ratio, spec.grpo.dual_clip, spec.grpo.kl_max) == ("token", 3.0, 10.0)
    assert spec.grpo.iterations == 150
    assert spec.overlap.accepted is not None
    assert "test tasks" in spec.overlap.accepted
    assert run("8b-grpo").overlap.accepted is None


def test_any_endpoint_and_any_folder_of_weights_will_do(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("USER_URL", "http://10.0.0.9:9/v1")
    monkeypatch.setenv("USER_MODEL", "other")
    monkeypatch.setenv("QWEN3_8B", str(tmp_path))
    user = run("8b-grpo").user.simulator
    assert user is not None
    assert (user.llm.base_url, user.llm.model) == ("http://10.0.0.9:9/v1", "other")
    located = load_run(SPECS / "8b-eval.yaml")
    assert located.resolve(located.spec.model.path or "").resolve() == tmp_path.resolve()
