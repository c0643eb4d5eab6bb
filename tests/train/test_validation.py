"""Weights are chosen on tasks of their own, and training ends when they get no better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from short_run import SHORT, carry_out, ready_model, write_run

from muarl.errors import RecordError, SpecError
from muarl.evaluate.summary import EvalSummary, summarise
from muarl.kernel.model import load_model, weights_checksum
from muarl.record import Episode, read_journal
from muarl.spec import load_run
from muarl.train.run_folder import RunFolder

VALIDATION = {"every": 1, "episodes": 4}


def run_that_scores(
    scores: Sequence[float | None],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    **validation: Any,
) -> Path:
    """A run file, and the success that each validation is going to find."""
    coming = iter(scores)

    def scored(episodes: Sequence[Episode], **how: Any) -> EvalSummary:
        found = summarise(episodes, **how)
        success = msgspec.structs.replace(found.success, value=next(coming))
        return msgspec.structs.replace(found, success=success)

    monkeypatch.setattr("muarl.train.validation.summarise", scored)
    grpo = {**SHORT["grpo"], "iterations": 4, "validation": {**VALIDATION, **validation}}
    return write_run(folder, grpo=grpo, model=ready_model())


def validations(out: Path) -> list[dict[str, Any]]:
    return [line for line in RunFolder(out).lines() if line["kind"] == "validation"]


def weights(folder: Path) -> str:
    return weights_checksum(load_model(folder))


def test_training_ends_when_patience_does_and_what_did_best_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = run_that_scores([0.2, 0.5, 0.4, 0.5], tmp_path, monkeypatch, patience=2)
    out = tmp_path / "out"
    rounds = carry_out(run_file, out)
    assert [line["iteration"] for line in rounds] == [0, 1, 2]
    lines = validations(out)
    assert [line["iteration"] for line in lines] == [0, 1, 2, 3]
    assert [line["is_best"] for line in lines] == [True, True, False, False], "the first of equals"
    assert [path.name for path in (out / "best").iterdir()] == ["000001"]
    assert weights(out / "model") == weights(out / "best/000001")
    assert weights(out / "model") != weights(max((out / "checkpoint").glob("0*")))
    (final,) = (e for e in RunFolder(out).lines() if e["kind"] == "eval" and e["phase"] == "final")
    assert final["n"] == 8

    played = {
        (e.key.phase, e.split)
        for e in read_journal(out / "episodes.journal")
        if e.key.phase.startswith(("validation", "eval"))
    }
    assert {split for phase, split in played if phase.startswith("validation")} == {"dev"}
    assert {split for phase, split in played if phase.startswith("eval")} == {"held_out"}
    versions = {
        e.turns[0].policy_version
        for e in read_journal(out / "episodes.journal")
        if e.key.phase == "eval:final:T1"
    }
    assert versions == {1}, "the final evaluation is of what was chosen"

    # Taken up, it neither trains nor validates any further.
    assert len(carry_out(run_file, out, resume=True)) == 3
    assert len(validations(out)) == 4
    assert weights(out / "model") == weights(out / "best/000001")


def test_without_patience_training_goes_to_its_end_and_a_validation_of_faults_is_never_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = run_that_scores([None, 0.1, 0.3], tmp_path, monkeypatch, every=3)
    out = tmp_path / "out"
    assert len(carry_out(run_file, out)) == 4
    assert [(line["iteration"], line["is_best"]) for line in validations(out)] == [
        (0, True),
        (3, True),
        (4, True),
    ]
    assert weights(out / "model") == weights(max((out / "checkpoint").glob("0*")))


def test_chosen_weights_that_are_gone_are_not_replaced_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_file = run_that_scores([0.5, 0.1, 0.1, 0.1, 0.1], tmp_path, monkeypatch)
    out = tmp_path / "out"
    carry_out(run_file, out)
    (out / "best/000000").rename(out / "elsewhere")
    with pytest.raises(RecordError, match="000000 is gone"):
        carry_out(run_file, out, resume=True)


def test_weights_are_not_chosen_on_the_tasks_that_they_are_measured_on_L10(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    path.write_text(
        path.read_text().replace("iterations: 3", "iterations: 3\n  validation: {split: held_out}")
    )
    with pytest.raises(SpecError, match="eval is on split 'held_out' too"):
        load_run(path)
