"""What the verbs that write never replace: what they read, a run's own files, what is no report."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import InProcess

from muarl.record import read_journal


@pytest.fixture
def rollout(muarl: InProcess, run_file: Path, out: Path) -> Path:
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0
    return out


OWN = (
    "episodes.journal",
    "spec.resolved.yaml",
    "model/config.json",
    "checkpoint",
    "tokenizer/tokenizer.json",
)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_output_takes_the_place_of_a_runs_own_files(muarl: InProcess, rollout: Path) -> None:
    before = files_of(rollout)
    for verb in ("export", "report"):
        for own in OWN:
            for flags in ((), ("--overwrite",)):
                ending = muarl(verb, rollout, "--out", rollout / own, *flags)
                ending.refuses(1, f"muarl: {rollout / own}", "; name another place")
    assert files_of(rollout) == before


def test_no_run_begins_among_the_files_of_another(
    muarl: InProcess, run_file: Path, rollout: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 2, "--out", rollout / "checkpoint"]
    muarl(*roll).refuses(1, "is among the files of the run")
    assert not (rollout / "checkpoint").exists()


def test_no_output_takes_the_place_of_a_journal_that_a_run_links_to(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    journal = (rollout / "episodes.journal").rename(tmp_path / "kept")
    (rollout / "episodes.journal").symlink_to(journal)
    ending = muarl("export", rollout, "--out", journal, "--overwrite")
    ending.refuses(1, f"{journal} would replace", "which is read")
    assert len(list(read_journal(journal))) == 2


def test_a_report_replaces_a_report_and_nothing_else(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>years of work</title>")
    report = ["report", rollout, "--out", page]
    muarl(*report).refuses(1, f"muarl: {page} is there already; use --overwrite")
    assert page.read_text() == "<title>years of work</title>"
    assert muarl(*report, "--overwrite").code == 0
    assert muarl(*report).code == 0
