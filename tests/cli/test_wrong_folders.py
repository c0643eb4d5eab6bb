"""What was named instead of a run's folder, or does not go together, is wrong usage in every verb."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import InProcess

READS_A_RUN = {
    "top": [],
    "review": ["--page", "x.html"],
    "compare": [],
    "score": [],
    "replay": [],
    "users": [],
    "export": ["--out", "x.jsonl"],
    "report": [],
    "view": [],
    "overlap": ["x.txt"],
}
"""Verb to what it needs beside the folder."""


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A folder that is not there, a file in its place, a folder of something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no run")
    (tmp_path / "other").mkdir()
    (tmp_path / "x.txt").write_text("a line")
    return {name: tmp_path / name for name in ("nowhere", "file", "other")}


@pytest.mark.parametrize("verb", READS_A_RUN)
def test_a_wrong_folder_is_wrong_usage(verb: str, muarl: InProcess, wrong: dict[str, Path]) -> None:
    for path in wrong.values():
        muarl(verb, path, *READS_A_RUN[verb]).refuses(2, str(path))
    assert not Path("x.jsonl").exists()
    assert not Path("x.html").exists()


@pytest.mark.parametrize("verb", ["eval", "rollout"])
def test_a_wrong_model_is_wrong_usage(
    verb: str, muarl: InProcess, run_file: Path, wrong: dict[str, Path]
) -> None:
    for path in wrong.values():
        ending = muarl(verb, run_file, "--model", path, "--out", "out")
        ending.refuses(2, f"no model in {path}")
    assert not Path("out").exists()


def test_a_wrong_folder_to_talk_with_or_to_resume_is_wrong_usage(
    muarl: InProcess, run_file: Path, wrong: dict[str, Path]
) -> None:
    for name, path in wrong.items():
        muarl("play", run_file.parent, "--run", path).refuses(2, f"no run in {path}")
        if name != "file":
            resumed = muarl("rollout", run_file, "--expert", "--out", path, "--resume")
            resumed.refuses(2, f"{path} holds no run to resume")


@pytest.mark.parametrize("benchmark", ["tau1", "tau2", "bfcl", "acebench"])
def test_a_copy_that_is_no_folder_is_wrong_usage(
    benchmark: str, muarl: InProcess, wrong: dict[str, Path]
) -> None:
    for path in (wrong["nowhere"], wrong["file"]):
        muarl("import", benchmark, "--from", path, "--to", "to").refuses(2, f"no folder {path}")


def test_what_does_not_go_together_is_wrong_usage(muarl: InProcess, run_file: Path) -> None:
    for words in (
        ["tasks", run_file.parent, "--out", "x.yaml", "--model", "m"],
        ["import", "tau2", "--from", ".", "--to", "to", "--judge-model", "m"],
        ["import", "bfcl", "--from", ".", "--to", "to", "--domain", "retail"],
        ["import", "tau1", "--from", ".", "--to", "to", "--official-checker"],
        ["report", run_file.parent, run_file.parent],
        ["compare", run_file.parent, run_file.parent],
    ):
        muarl(*words).refuses(2)


def test_a_report_without_its_journal_says_so_on_the_terminal_too(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0
    (out / "episodes.journal").unlink()
    ending = muarl("report", out)
    assert ending.code == 0
    assert ending.lines == [f"{out}: episodes.journal is missing: no episode is shown."]
    assert "episodes.journal is missing: no episode is shown." in (out / "report.html").read_text()
