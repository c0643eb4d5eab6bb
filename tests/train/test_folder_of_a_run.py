"""The folder of a run: made, refused, taken up, and read after a crash (laws L8 and L9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.errors import NoRunError, RecordError, SetupError, SpecError
from muarl.record import JournalWriter
from muarl.spec import RunSpec, load_spec
from muarl.train.run_folder import RunFolder, versions, write_text


def spec(**changes: object) -> RunSpec:
    return RunSpec.model_validate(
        {"version": 1, "domain": "d.yaml", "model": {"tiny": {}}, "grpo": {}, **changes}
    )


def create(
    path: Path, run: RunSpec | None = None, *, resume: bool = False, overwrite: bool = False
) -> RunFolder:
    return RunFolder.create(path, run or spec(), resume=resume, overwrite=overwrite)


def test_a_fresh_folder_says_what_ran_and_on_what(tmp_path: Path) -> None:
    folder = create(tmp_path / "runs" / "one")
    assert load_spec(folder.spec, RunSpec).spec == spec()
    assert "lr_decay_iterations" in folder.spec.read_text(), "every default is written out"
    assert json.loads((folder.path / "versions.json").read_text()) == versions()
    assert {"python", "mcp", "anyio"} <= versions().keys()
    assert list(folder.lines()) == []


def test_a_run_is_not_written_over_unless_asked_to(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    folder.log("iteration", iteration=0)
    with pytest.raises(
        SetupError, match=r"already holds a run. Use --resume .* --overwrite .* --out"
    ):
        create(folder.path)
    assert list(create(folder.path, resume=True).lines()) == list(folder.lines()), "as advised"
    assert len(list(folder.lines())) == 1
    (folder.path / "model").mkdir()
    again = create(folder.path, spec(seed=1), overwrite=True)
    assert list(again.lines()) == []
    assert not again.model.exists()


def test_nobody_is_advised_to_resume_what_cannot_be_resumed(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    other = (
        r"already holds another run. Use --overwrite to replace it, or --out for another folder$"
    )
    how: dict[str, Any] = {"resume": False, "overwrite": False}
    with pytest.raises(SetupError, match=other):
        create(folder.path, spec(seed=1))
    with pytest.raises(SetupError, match=other):
        RunFolder.create(folder.path, spec(), plan={"policy": "expert"}, **how)
    with pytest.raises(SetupError, match=r"holds a run. Use --overwrite to replace it, or --out"):
        RunFolder.create(folder.path, spec(), resumable=False, **how)
    folder.spec.write_text("version: 1\n")
    with pytest.raises(SetupError, match=other):
        create(folder.path)


@pytest.mark.parametrize("needed", [".", "model", "model/config.json", "../run/model"])
def test_what_the_run_is_going_to_read_is_not_written_over(needed: str, tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    folder.model.mkdir()
    (folder.model / "config.json").write_text("{}")
    reads = [folder.path / needed]
    with pytest.raises(SetupError, match=r"--overwrite would remove .*, which this run reads"):
        RunFolder.create(folder.path, spec(), resume=False, overwrite=True, reads=reads)
    with pytest.raises(SetupError, match=r"holds .*, which this run reads. Choose another --out$"):
        RunFolder.create(folder.path, spec(), resume=False, overwrite=False, reads=reads)
    assert (folder.model / "config.json").exists()
    beside = [tmp_path / "run-2", tmp_path]
    RunFolder.create(folder.path, spec(), resume=False, overwrite=True, reads=beside)
    assert not folder.model.exists()


@pytest.mark.parametrize("flags", [{"overwrite": True}, {"resume": True}])
def test_a_run_that_goes_on_is_neither_written_over_nor_taken_up(
    flags: dict[str, bool], tmp_path: Path
) -> None:
    folder = create(tmp_path / "run")
    with JournalWriter(folder.journal):
        torn(folder, b"half a line")
        with pytest.raises(RecordError, match="another writer has this journal open"):
            create(folder.path, **flags)
        assert folder.metrics.read_bytes() == b"half a line"
    create(folder.path, **flags)
    assert folder.metrics.read_bytes() == b""


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for flags in ({}, {"overwrite": True}):
        with pytest.raises(SetupError, match="is not empty and holds no run"):
            create(tmp_path, **flags)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_path_that_is_no_folder_is_refused_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SetupError, match="cannot be used as a run's folder: Not a directory"):
            create(path)


def test_an_empty_folder_can_be_used(tmp_path: Path) -> None:
    assert create(tmp_path).spec.exists()


def test_a_run_is_taken_up_under_the_same_spec(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    folder.log("iteration", iteration=0, reward=0.5)
    assert list(create(folder.path, resume=True).lines()) == [
        {"kind": "iteration", "iteration": 0, "reward": 0.5}
    ]


def test_a_run_is_not_taken_up_under_another_spec_and_what_differs_is_named_L8(
    tmp_path: Path,
) -> None:
    folder = create(tmp_path / "run", spec(grpo={"lr": 0.001}, cold_start={"lr": 0.002}))
    with pytest.raises(SetupError) as caught:
        create(folder.path, spec(grpo={"lr": 0.002}, cold_start={"lr": 0.001}), resume=True)
    first, *lines = str(caught.value).splitlines()
    assert "was run with another spec; cannot resume" in first
    assert lines == ["  cold_start.lr: 0.002 -> 0.001", "  grpo.lr: 0.001 -> 0.002"]


def test_a_resolved_spec_that_was_spoiled_is_named(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    folder.spec.write_text("version: 1\nsead: 3\n")
    with pytest.raises(SpecError, match=r"spec\.resolved\.yaml:2:1: unknown field 'sead'"):
        create(folder.path, resume=True)


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    with pytest.raises(NoRunError, match="holds no run to resume; leave --resume out"):
        create(tmp_path / "run", resume=True)
    assert not (tmp_path / "run").exists()


# --- metrics --------------------------------------------------------------------------------------


def torn(folder: RunFolder, tail: bytes) -> None:
    with folder.metrics.open("ab") as file:
        file.write(tail)


@pytest.mark.parametrize(
    "tail", [b'{"kind": "iter', b"{", b'{"kind": "iteration", "iteration": 1}', b"\0\0", b"\xc3"]
)
def test_a_torn_last_line_is_dropped_and_never_joined_with_the_next_L9(
    tmp_path: Path, tail: bytes
) -> None:
    folder = create(tmp_path / "run")
    folder.log("iteration", iteration=0)
    torn(folder, tail)
    assert [line["iteration"] for line in folder.lines()] == [0]
    again = create(folder.path, resume=True)
    again.log("iteration", iteration=1)
    assert [line["iteration"] for line in again.lines()] == [0, 1]


@pytest.mark.parametrize("line", [b"{", b"5", b"[1]", b"\xff", b'"text"', b""])
def test_a_damaged_line_is_named_L9(tmp_path: Path, line: bytes) -> None:
    folder = create(tmp_path / "run")
    folder.log("iteration", iteration=0)
    torn(folder, line + b"\n")
    folder.log("iteration", iteration=1)
    with pytest.raises(RecordError, match=r"metrics\.jsonl:2: not a JSON object"):
        list(folder.lines())


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        (b"{}", "kind"),
        (b'{"kind": "eval"}', "phase, temperature"),
        (b'{"kind": "iteration", "step": 1}', "iteration"),
        (b'{"kind": "cold_start"}', "step"),
        (b'{"kind": "floor"}', "name"),
    ],
)
def test_a_line_that_does_not_say_what_it_is_of_is_named_L9(
    line: bytes, lacks: str, tmp_path: Path
) -> None:
    folder = create(tmp_path / "run")
    torn(folder, line + b"\n")
    with pytest.raises(RecordError, match=rf"metrics\.jsonl:1: no line .* it lacks {lacks}\. Rem"):
        create(folder.path, resume=True)


def test_lines_that_are_written_again_are_dropped_first(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    for number in range(4):
        folder.log("iteration", iteration=number, text="é\n")
    folder.log("eval", phase="cold", temperature=1.0)
    folder.keep_lines(lambda line: line["kind"] != "iteration" or line["iteration"] < 2)
    assert [line.get("iteration", "eval") for line in folder.lines()] == [0, 1, "eval"]


def test_a_metric_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    folder = create(tmp_path / "run")
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.log("iteration", reward=float("nan"))
    assert list(folder.lines()) == []


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"


@pytest.mark.parametrize("flags", [{}, {"overwrite": True}, {"resume": True}])
def test_from_its_first_moment_on_a_run_has_its_folder_for_itself(
    flags: dict[str, bool], tmp_path: Path
) -> None:
    how = {"resume": False, "overwrite": False}
    with RunFolder.opened(tmp_path / "run", spec(), **how) as folder:  # and no journal yet
        before = sorted(folder.path.iterdir())
        with (
            pytest.raises(RecordError, match="another run is writing there"),
            RunFolder.opened(folder.path, spec(), **{**how, **flags}),
        ):
            pytest.fail("two runs in one folder")
        assert sorted(folder.path.iterdir()) == before
    with RunFolder.opened(folder.path, spec(), resume=True, overwrite=False) as again:
        assert again.spec.exists()
    with RunFolder.opened(folder.path, spec(seed=3), resume=False, overwrite=True) as fresh:
        with (
            pytest.raises(RecordError, match="another run is writing there"),
            RunFolder.opened(folder.path, spec(), **{**how, **flags}),
        ):
            pytest.fail("two runs in one folder")
        assert "seed: 3" in fresh.spec.read_text()


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(NoRunError, match="no run to resume"),
        RunFolder.opened(tmp_path / "run", spec(), resume=True, overwrite=False),
    ):
        pytest.fail("there is nothing to resume")
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with (
            pytest.raises(SetupError, match="cannot be used as a run's folder: "),
            RunFolder.opened(path, spec(), resume=False, overwrite=False),
        ):
            pytest.fail("it is no folder")
