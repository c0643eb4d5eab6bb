"""The paper's runs from first to last, on upstream's data, with a tiny random Qwen3 on the CPU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from muarl.cli import main

ROOT = Path(__file__).parents[2]
SPECS = "specs/mua-rl"
TAU2 = ("retail", "airline", "telecom")


@pytest.fixture(scope="module")
def place(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the repository's, with what `docs/mua-rl.md` has imported."""
    place = tmp_path_factory.mktemp("mua-rl")
    for part in ("specs", "domains"):
        shutil.copytree(ROOT / part, place / part)
    data, v020 = fixtures / "data", place / "imported" / "tau2-v0.2.0"
    for say in (
        ["tau1", "--from", data, "--to", place / "imported/tau1"],
        ["bfcl", "--from", data / "bfcl/v3", "--to", place / "imported/bfcl-v3"],
        ["acebench", "--from", data / "acebench", "--to", place / "imported/acebench"],
        *(
            ["tau2", "--from", data, "--version", "v0.2.0", "--to", v020, "--domain", domain]
            for domain in TAU2
        ),
    ):
        assert main(["import", *map(str, say)]) == 0
    return place


def lines(folder: Path, kind: str) -> list[dict]:
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in metrics if line["kind"] == kind]


@pytest.fixture(scope="module")
def begun(place: Path) -> Path:
    """The same, after the cold start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        train = ["train", f"{SPECS}/8b-cold-start.yaml", f"{SPECS}/tiny-cold-start.yaml"]
        assert main([*train, "--out", "runs/8b-cold-start"]) == 0
    return place


@pytest.mark.slow
def test_cold_start_grpo_and_the_table(begun: Path, monkeypatch, capsys) -> None:
    place = begun
    monkeypatch.chdir(place)
    (cold,) = lines(place / "runs/8b-cold-start", "eval")
    assert set(cold["by_row"]) == {"desk", "handset", "retail", "telecom"}

    train = ["train", f"{SPECS}/8b-grpo.yaml", f"{SPECS}/tiny-grpo.yaml"]
    assert main([*train, "--set", "grpo.iterations=1", "--out", "runs/grpo"]) == 0
    final = lines(place / "runs/grpo", "eval")[-1]
    assert set(final["by_row"]) == {"tau1-retail", *(f"tau2-{d}" for d in TAU2)}
    (iteration,) = lines(place / "runs/grpo", "iteration")
    assert (iteration["episodes"], iteration["faults"]) == (8, 0)

    capsys.readouterr()
    say = ["eval", f"{SPECS}/8b-eval.yaml", f"{SPECS}/tiny-eval.yaml", "--model", "runs/grpo"]
    assert main([*say, "--out", "runs/table", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert {row.removesuffix(" (trained on)") for row in table["by_row"]} == {
        *("bfcl-base", "bfcl-miss-func", "bfcl-miss-param", "bfcl-long-context"),
        *("ace-multi-step", "ace-multi-turn", "tau1-airline", "tau1-retail"),
        *(f"tau2-{domain}" for domain in TAU2),
    }
    assert (table["n"], table["faults"]) == (20, 0)
    assert "tau2-telecom (trained on)" in table["by_row"]
    assert table["overlap"]["exact"] > 0


@pytest.mark.slow
def test_the_released_recipe_trains_on_what_it_is_evaluated_on(begun: Path, monkeypatch) -> None:
    monkeypatch.chdir(begun)
    say = ["train", f"{SPECS}/mua-rl-as-released.yaml", f"{SPECS}/tiny-grpo.yaml"]
    assert main([*say, "--set", "grpo.iterations=1", "--out", "runs/released"]) == 0
    (overlap,) = lines(begun / "runs/released", "overlap")
    assert overlap["exact"] == overlap["tasks"] == 4
    assert "test tasks" in overlap["accepted"]
