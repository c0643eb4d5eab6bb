"""The paper's runs from first to last, on upstream's data, with a tiny random Qwen3 on the CPU."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from test_grpo_runs import needs_vllm

from muarl.cli import main

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[2]
SPECS = "specs/mua-rl"
BUSINESSES = {"desk", "handset", "retail", "airline", "telecom"}
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


def fewer(file: Path, **numbers: int) -> None:
    """Put smaller numbers into a synthesis file, on which no overlay can be laid."""
    text = file.read_text()
    for key, number in numbers.items():
        text, found = re.subn(rf"{key}: \d+", f"{key}: {number}", text)
        assert found == 1
    file.write_text(text)


@pytest.fixture(scope="module")
def begun(place: Path) -> Path:
    """The same, after the cold start, whose dialogues are made and verified first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        fewer(place / SPECS / "cold-start.synth.yaml", dialogues=30, at_most=16)
        assert main(["synth", f"{SPECS}/cold-start.synth.yaml"]) == 0
        made = ["runs/cold-start.synth", "--what", "dialogues", "--out", "runs/cold-start.jsonl"]
        assert main(["export", *made]) == 0
        train = ["train", f"{SPECS}/8b-cold-start.yaml", f"{SPECS}/tiny-cold-start.yaml"]
        assert main([*train, "--out", "runs/8b-cold-start"]) == 0
    return place


@pytest.mark.slow
def test_the_cold_start_imitates_what_the_factory_made_of_all_businesses(begun: Path) -> None:
    dialogues = (begun / "runs/cold-start.jsonl").read_text().splitlines()
    assert len(dialogues) == 16
    assert {json.loads(line)["provenance"]["domain"] for line in dialogues} == BUSINESSES
    (cold,) = lines(begun / "runs/8b-cold-start", "eval")
    assert set(cold["by_row"]) == BUSINESSES


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["embedded", pytest.param("vllm", marks=[pytest.mark.vllm, needs_vllm])]
)
def test_grpo_and_the_table(engine: str, begun: Path, monkeypatch, capsys) -> None:
    place, grpo, table = begun, f"runs/grpo-{engine}", f"runs/table-{engine}"
    monkeypatch.chdir(place)
    sampled = ["--set", f"engine={engine}"]
    train = ["train", f"{SPECS}/8b-grpo.yaml", f"{SPECS}/tiny-grpo.yaml", *sampled]
    assert main([*train, "--set", "grpo.iterations=1", "--out", grpo]) == 0
    final = lines(place / grpo, "eval")[-1]
    assert set(final["by_row"]) == {"tau1-retail", *(f"tau2-{d}" for d in TAU2)}
    (iteration,) = lines(place / grpo, "iteration")
    assert (iteration["episodes"], iteration["faults"]) == (8, 0)

    capsys.readouterr()
    say = ["eval", f"{SPECS}/8b-eval.yaml", f"{SPECS}/tiny-eval.yaml", *sampled, "--model", grpo]
    assert main([*say, "--out", table, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row.removesuffix(" (trained on)") for row in found["by_row"]} == {
        *("bfcl-base", "bfcl-miss-func", "bfcl-miss-param", "bfcl-long-context"),
        *("ace-multi-step", "ace-multi-turn", "tau1-airline", "tau1-retail"),
        *(f"tau2-{domain}" for domain in TAU2),
    }
    assert (found["n"], found["faults"]) == (20, 0)
    assert "tau2-telecom (trained on)" in found["by_row"]
    assert found["overlap"]["exact"] > 0


@pytest.mark.slow
def test_the_released_recipe_trains_on_what_it_is_evaluated_on(begun: Path, monkeypatch) -> None:
    monkeypatch.chdir(begun)
    say = ["train", f"{SPECS}/mua-rl-as-released.yaml", f"{SPECS}/tiny-grpo.yaml"]
    assert main([*say, "--set", "grpo.iterations=1", "--out", "runs/released"]) == 0
    (overlap,) = lines(begun / "runs/released", "overlap")
    assert overlap["exact"] == overlap["tasks"] == 4
    assert "test tasks" in overlap["accepted"]
