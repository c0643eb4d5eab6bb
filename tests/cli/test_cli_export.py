"""`muarl export`: stored episodes in other forms."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from bad_input import InProcess, in_a_new_process
from datasets import load_from_disk

from muarl.kernel.advantage import group_advantages
from muarl.record import JournalWriter, Outcome, read_journal
from muarl.spec import GrpoSpec, RunSpec, dump_spec
from muarl.spec.load import load_spec
from muarl.testing import build_episode, build_key


@pytest.fixture
def rollout(muarl: InProcess, run_file: Path, out: Path) -> Path:
    """Six dialogues of the expert, and a group of four that differ, one of them a fault."""
    roll = ["rollout", run_file, "--expert", "--episodes", 6, "--group-size", 2]
    assert muarl(*roll, "--out", out).code == 0
    rewards = [1.0, 0.0, None, 0.0]
    with JournalWriter(out / "episodes.journal") as writer:
        for sample, reward in enumerate(rewards):
            outcome = Outcome.INFRA_FAULT if reward is None else Outcome.COMPLETED
            key = build_key("t", sample, phase="mixed")
            writer.append(build_episode(key, outcome=outcome, reward=reward))
    return out


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_episodes_and_samples_come_out_in_every_form(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    rows = {}
    for what, says in (
        ("episodes", "10 episodes in {}\n"),
        ("samples", "9 samples in {}; left out: 1 faults have nothing to learn from\n"),
    ):
        for form in ("jsonl", "parquet", "hf"):
            path = tmp_path / f"{what}.{form}"
            ending = muarl("export", rollout, "--what", what, "--format", form, "--out", path)
            assert (ending.code, ending.lines) == (0, []), ending.lines
            assert ending.out == says.format(path)
        rows[what] = lines(tmp_path / f"{what}.jsonl")
        assert pq.read_table(tmp_path / f"{what}.parquet").to_pylist() == rows[what]
        assert load_from_disk(str(tmp_path / f"{what}.hf")).to_list() == rows[what]
    stored = list(read_journal(rollout / "episodes.journal"))
    assert [row["reward"] for row in rows["episodes"]] == [e.reward for e in stored]
    mixed = [row for row in rows["samples"] if row["phase"] == "mixed"]
    assert [row["advantage"] for row in mixed] == group_advantages([1.0, 0.0, 0.0])
    assert [row["sample"] for row in mixed] == [0, 1, 3]
    masks = [sum(row["loss_mask"]) for row in rows["samples"]]
    assert masks == [e.num_sampled for e in stored if e.samples and e.reward is not None]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("shop", "out"),
        *(f"{what}.{form}" for what in rows for form in ("jsonl", "parquet", "hf")),
    }


def test_trainers_rows_come_out_in_every_form(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    for what, says in (
        ("trl", "9 samples in {}; left out: 1 faults have nothing to learn from\n"),
        ("prompts", "2 prompts in {}\n"),
    ):
        for form in ("jsonl", "parquet", "hf"):
            path = tmp_path / f"{what}.{form}"
            ending = muarl("export", rollout, "--what", what, "--format", form, "--out", path)
            assert (ending.code, ending.out) == (0, says.format(path)), ending.lines
        rows = lines(tmp_path / f"{what}.jsonl")
        assert pq.read_table(tmp_path / f"{what}.parquet").to_pylist() == rows
        assert load_from_disk(str(tmp_path / f"{what}.hf")).to_list() == rows


def test_what_a_credit_made_of_advantages_is_not_exported_and_that_is_said(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    path = rollout / "spec.resolved.yaml"
    grpo = GrpoSpec.model_validate({"credit": {"gigpo": {}}})
    path.write_text(dump_spec(load_spec(path, RunSpec).spec.model_copy(update={"grpo": grpo})))
    ending = muarl("export", rollout, "--out", tmp_path / "x.jsonl")
    assert "not what the run's credit (gigpo) made of them" in ending.out


def test_episodes_can_be_chosen_by_phase_and_reward(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    path = tmp_path / "few.jsonl"
    few = ["export", rollout, "--phase", "mixed", "--what", "samples", "--out", path]
    ending = muarl(*few, "--min-reward", 0.5, "--baseline", "mean")
    assert ending.out == f"1 samples in {path}; left out: 3 episodes earned less than 0.5\n"
    (row,) = lines(path)
    assert (row["sample"], row["reward"]) == (0, 1.0)
    assert row["advantage"] == pytest.approx(2 / 3), "of the whole group, whoever is left out"


def test_shards_are_exported_together(muarl: InProcess, rollout: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    ending = muarl("export", rollout, rollout, "--out", path)
    assert ending.out == f"10 episodes in {path}\n", "an episode that is in two journals is one"


@pytest.mark.parametrize("verb", ["export", "users", "report", "overlap"])
def test_an_episode_that_is_torn_is_left_out_and_that_is_said(
    verb: str, muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    journal = rollout / "episodes.journal"
    os.truncate(journal, journal.stat().st_size - 7)
    torn = f"muarl: {journal}: its last record is torn, and left out"
    out = () if verb == "users" else ("--out", tmp_path / "x")
    other = (rollout,) if verb == "overlap" else ()
    ending = muarl(verb, rollout, *other, *out)
    assert any(line.startswith(torn) for line in ending.lines), ending.lines
    if verb == "export":
        assert ending.out.startswith("9 episodes in")


# Bad input.


def test_nothing_is_replaced_that_was_not_meant_to_be(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rows"
    path.write_text("years of work")
    export = ["export", rollout, "--out", path]
    muarl(*export).refuses(1, f"muarl: {path} is there already; use --overwrite")
    ending = muarl(*export, "--format", "hf", "--overwrite")
    ending.refuses(1, f"muarl: {path} is not a folder with dataset_info.json")
    assert path.read_text() == "years of work"
    assert muarl(*export, "--overwrite").code == 0
    path.unlink()
    assert muarl(*export, "--format", "hf").code == 0
    assert muarl(*export, "--format", "hf", "--overwrite").code == 0
    ending = muarl(*export, "--overwrite")
    ending.refuses(1, f"muarl: {path} is not a file, so it is not replaced; name another place")


def test_a_failure_on_the_way_leaves_nothing(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    journal = rollout / "episodes.journal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    journal.write_bytes(data)
    path = tmp_path / "rows"
    muarl("export", rollout, "--out", path).refuses(1, f"{journal}: damaged from byte")
    assert not path.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "shop"]


def test_wrong_usage_and_what_is_no_run(muarl: InProcess, tmp_path: Path, out: Path) -> None:
    for arguments, says in (
        ([out], "the following arguments are required: --out"),
        ([out, "--out", tmp_path / "x", "--format", "csv"], "invalid choice: 'csv'"),
        ([out, "--out", tmp_path / "x", "--what", "turns"], "invalid choice: 'turns'"),
        (["--out", tmp_path / "x"], "the following arguments are required: RUN"),
    ):
        ending = muarl("export", *arguments)
        assert ending.code == 2
        assert says in ending.lines[-1]
    muarl("export", out, "--out", tmp_path / "x").refuses(2, f"{out}: no such run folder")


@pytest.mark.parametrize(("library", "form"), [("pyarrow", "parquet"), ("datasets", "hf")])
def test_a_missing_extra_names_the_command_that_installs_it(
    library: str, form: str, rollout: Path, tmp_path: Path
) -> None:
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in ('torch', {library!r}):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    env = {"PYTHONPATH": str(blocker)}
    path = tmp_path / "rows"
    ending = in_a_new_process("export", rollout, "--format", form, "--out", path, env=env)
    ending.refuses(
        1, f"muarl: muarl export needs {library}. Install it with `pip install 'muarl[export]'`"
    )
    assert not path.exists()
    assert in_a_new_process("export", rollout, "--out", path, env=env).code == 0
