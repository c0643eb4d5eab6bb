"""Several domains in one run: tasks, users, draws, records, figures and what changed of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.cli import main
from muarl.errors import SpecError
from muarl.spec import TaskSpec, load_run
from muarl.suite import load_any_domain, load_domain_of
from muarl.train.rollouts import weighted_sample
from muarl.train.run_domain import refuse_unfit

ROOT = Path(__file__).parents[2]
SIZES = (("big", 40), ("small", 10))

RUN = """
version: 1
domain: both.yaml
model: {tiny: {hidden_size: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2, head_dim: 16, ffn_size: 32}}
rollout: {group_size: 2, max_turns: 8, max_tokens: 24, context_tokens: 2048, concurrency: 16}
cold_start: {episodes: 8, steps: 2}
grpo: {iterations: 1, tasks_per_iteration: 2, updates_per_iteration: 1}
eval: {split: held_out, episodes: 2, temperatures: [0.0]}
"""

SUITE = """
version: 1
id: both
summary: An order desk and a phone.
members:
  desk: {file: DESK, splits: {train: train, held_out: held_out}}
  handset: {file: HANDSET, splits: {train: train, held_out: held_out}, row: phone}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    suite = SUITE.replace("DESK", str(ROOT / "domains/desk"))
    (tmp_path / "both.yaml").write_text(suite.replace("HANDSET", str(ROOT / "domains/handset")))
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def lines(folder: Path, kind: str) -> list[dict]:
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in metrics if line["kind"] == kind]


def test_tasks_are_of_each_domain_in_turn_and_know_it(folder: Path) -> None:
    suite = load_domain_of(load_run(folder / "run.yaml"))
    tasks = suite.tasks("held_out")
    assert [task.id.split(".")[0] for task in tasks[:4]] == ["desk", "handset"] * 2
    assert [suite.of(task.id).spec.id for task in tasks[:2]] == ["desk", "handset"]
    assert [suite.row(task.id) for task in tasks[:2]] == ["desk", "phone"]


def test_a_run_trains_and_evaluates_on_all_of_them_and_is_taken_up(folder: Path, capsys) -> None:
    out = folder / "out"
    assert main(["train", str(folder / "run.yaml"), "--out", str(out)]) == 0
    played = [line for line in lines(out, "eval") if line["phase"] == "final"]
    assert set(played[0]["by_row"]) == {"desk", "phone"}
    assert played[0]["n"] == 2
    assert played[0]["by_row"]["phone"]["success"]["n"] == 1
    assert played[0]["contamination"]["says"] == "none found"
    for beside in (played[0], *played[0]["floor_by_row"].values()):
        assert {"floor", "above_floor"} <= beside.keys()
        assert 0 <= beside["floor"]["low"] <= beside["floor"]["value"] <= 1
    assert set(played[0]["floor_by_row"]) == {"desk", "phone"}
    assert [(u["phase"], u["dialogues"]) for u in lines(out, "users")][-1] == ("final", 2)
    assert {line["name"] for line in lines(out, "floor")} >= {"do_nothing", "ask_for_everything"}
    capsys.readouterr()
    assert main(["replay", str(out)]) == 0  # each on its own domain's tools
    assert " 0 differ" in capsys.readouterr().out
    assert main(["users", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    suite = folder / "both.yaml"
    suite.write_text(suite.read_text().replace("row: phone", "weight: 2"))
    assert main(["train", str(folder / "run.yaml"), "--out", str(out), "--resume"]) != 0
    assert "weight" in capsys.readouterr().err


def test_what_a_suite_gets_wrong_is_said_with_its_line(folder: Path) -> None:
    suite = folder / "both.yaml"
    sound = suite.read_text()
    for wrong, now, said in (
        ("train: train", "train: trian", "unknown split 'trian'"),
        (str(ROOT / "domains/desk"), "nowhere", "no such file: 'nowhere'"),
        ("row: phone", "weight: 2", "'handset' has a weight and 'desk' has none"),
        ("  desk:", "  de.sk:", "de.sk"),
    ):
        suite.write_text(sound.replace(wrong, now, 1))
        with pytest.raises(SpecError, match=said) as error:
            load_any_domain(suite)
        assert error.value.problems[0].line > 0


def test_an_overlap_is_refused_or_accepted_with_its_reason_and_reported(folder, capsys) -> None:
    suite = folder / "both.yaml"
    suite.write_text(suite.read_text().replace("held_out: held_out", "held_out: train"))
    run = folder / "run.yaml"
    assert main(["check", str(run), "--offline"]) == 0
    with pytest.raises(SpecError, match=r"shares 2600 tasks with what is trained on"):
        refuse_unfit(load_run(run), load_domain_of(load_run(run)))
    accepted = "overlap.accepted='As the paper did.'"
    out = folder / "out"
    assert (
        main(["train", str(run), "--set", accepted, "--set", "grpo=null", "--out", str(out)]) == 0
    )
    (line,) = lines(out, "overlap")
    assert (line["accepted"], line["tasks"], line["exact"]) == ("As the paper did.", 2, 2)
    assert main(["report", str(out)]) == 0
    assert "It was accepted: As the paper did." in (out / "report.html").read_text()
    # The same tasks by the name of another suite, or of the domain itself, are the same tasks.
    (folder / "other.yaml").write_text(suite.read_text().replace("  desk:", "  shop:"))
    other = ["--set", "domain=" + str(folder / "other.yaml"), "--set", "grpo=null"]
    say = ["eval", str(run), "--model", str(out), "--out", str(folder / "e"), *other]
    capsys.readouterr()
    assert main(say) != 0
    assert "with what is trained on (train), such as 'shop." in capsys.readouterr().err
    assert main([*say, "--set", accepted, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["overlap"]["accepted"], said["overlap"]["tasks"]) == ("As the paper did.", 2)
    assert said["contamination"]["says"] == "2 of 2 tasks were trained on"
    (trained,) = lines(out, "eval")[-1:]
    assert trained["contamination"]["tag"] == "2 of 2"


def test_weights_beside_a_curriculum_are_refused(folder: Path) -> None:
    suite = folder / "both.yaml"
    suite.write_text(
        suite.read_text().replace("row: phone", "weight: 2").replace("}}\n", "}, weight: 1}\n", 1)
    )
    run = load_run(folder / "run.yaml", settings=["grpo.curriculum={half: {}}"])
    with pytest.raises(SpecError, match="weights and a curriculum both say what is drawn"):
        refuse_unfit(run, load_domain_of(run))


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_a_weighted_draw_takes_no_task_twice(seed: int, count: int) -> None:
    pool = [TaskSpec(id=f"t{n}", goal="g", gold=[]) for n in range(30)]
    drawn = weighted_sample(random.Random(seed), pool, [1.0 + n for n in range(30)], count)
    assert len({task.id for task in drawn}) == len(drawn) == count


def test_domains_are_drawn_by_their_weights_whatever_their_size() -> None:
    pool = [TaskSpec(id=f"{name}.{n}", goal="g", gold=[]) for name, n in SIZES for n in range(n)]
    weights = [3 / 40 if task.id.startswith("big") else 1 / 10 for task in pool]
    rng = random.Random(0)
    drawn = [weighted_sample(rng, pool, weights, 1)[0] for _ in range(2000)]
    assert sum(task.id.startswith("big") for task in drawn) / 2000 == pytest.approx(0.75, abs=0.04)


@pytest.mark.parametrize("offline", [True, False])
def test_a_suite_alone_is_checked_for_splits_that_its_members_do_not_have(
    folder: Path, capsys: pytest.CaptureFixture[str], offline: bool
) -> None:
    suite = folder / "both.yaml"
    suite.write_text(suite.read_text().replace("train: train", "train: trian", 1))
    assert main(["check", str(suite), *(["--offline"] if offline else [])]) == 2
    said = capsys.readouterr().err.strip()
    assert said.endswith("unknown split 'trian'; did you mean 'train'?"), said
