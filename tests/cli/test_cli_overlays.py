"""Overlays, `--set` and `--dry-run` of the verbs that take a run file."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import write_all

from muarl.cli import main
from muarl.spec import RunSpec, load_run, load_spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_all(tmp_path)
    tasks = (tmp_path / "tasks.yaml").read_text()
    held_out = tasks.partition("tasks:\n")[2].replace("cancel-1", "cancel-2")
    (tmp_path / "tasks.yaml").write_text(f"{tasks}{held_out}    split: held_out\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "small.yaml").write_text(
        "version: 1\ndomain: ../domain.yaml\nrollout: {max_turns: 3}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "verb",
    [["train"], ["rollout", "--expert"], ["eval", "--model", "runs/none"]],
    ids=lambda v: v[0],
)
def test_a_dry_run_prints_the_whole_run_and_does_nothing(
    folder: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.rglob("*"))
    words = ["run.yaml", "sub/small.yaml", "--set", "rollout.max_tokens=9", "--dry-run"]
    assert main([*verb, *words]) == 0
    assert set(folder.rglob("*")) == before
    (folder / "whole.yaml").write_text(capsys.readouterr().out)
    whole = load_run(folder / "whole.yaml").spec
    assert (whole.rollout.max_turns, whole.rollout.max_tokens) == (3, 9)
    assert whole.domain == "domain.yaml"


def test_a_dry_run_counts_what_the_verb_itself_sets(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "run.yaml", "--seed", "8", "--dry-run"]) == 0
    (folder / "whole.yaml").write_text(capsys.readouterr().out)
    assert load_spec(folder / "whole.yaml", RunSpec).spec.seed == 8


def test_problems_of_a_dry_run_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "run.yaml", "--set", "grpo.lrr=1", "--dry-run"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "--set grpo.lrr=1: unknown field 'lrr'; did you mean 'lr'?\n"


def test_overlays_are_checked_with_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", "run.yaml", "sub/small.yaml", "--set", "eval.split=nowhere", "--offline"]
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(
        "--set eval.split=nowhere: unknown split 'nowhere'; known: train"
    )


@pytest.mark.parametrize("more", [["sub/small.yaml"], ["--set", "id=x"]])
def test_nothing_is_laid_over_a_domain(
    folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "domain.yaml", *more, "--offline"]) == 2
    assert "only a run or synth file has something over it" in capsys.readouterr().err
