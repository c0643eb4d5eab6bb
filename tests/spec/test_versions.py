"""Old forms of spec files: read with a warning, at their places, and rewritten with their comments."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

import pytest
from pydantic import ValidationError
from ruamel.yaml.comments import CommentedMap
from spec_files import said

from muarl import __version__
from muarl.cli import main
from muarl.cli._warnings import warnings_in_lines
from muarl.errors import OldVersionWarning, SpecError
from muarl.spec import TasksFile, load_spec
from muarl.spec.base import Spec
from muarl.spec.mend import mended
from muarl.spec.schema import KINDS, newest_version
from muarl.spec.versions import UPGRADES, rename

OLD = """\
# yaml-language-server: $schema=schemas/note.v1.json
# What this is for.
version: 1  # the first
titel: "012"  # not ten
marks:
  # the best
  - {who: ann, points: 3}
  - who: bob
    points: 2  # too few
"""

NEW = """\
# yaml-language-server: $schema=schemas/note.v3.json
# What this is for.
version: 3  # the first
title: "012"  # not ten
marks:
  # the best
  - {who: ann, score: 3}
  - who: bob
    score: 2   # too few
rounded: true
"""


class Mark(Spec):
    """One mark."""

    who: str
    score: int


class Note(Spec):
    """A kind of file that had two forms before."""

    version: Literal[3]
    title: str
    marks: list[Mark]
    rounded: bool = False


def _v1_to_v2(note: CommentedMap) -> None:
    rename(note, "titel", "title")


def _v2_to_v3(note: CommentedMap) -> None:
    for mark in note["marks"]:
        rename(mark, "points", "score")
    note["rounded"] = True


@pytest.fixture(autouse=True)
def _kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "note", Note)
    monkeypatch.setitem(UPGRADES, "note", {1: _v1_to_v2, 2: _v2_to_v3})


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "schemas").mkdir(exist_ok=True)
    (tmp_path / "schemas" / "note.v3.json").write_text("{}")
    path = tmp_path / "note.yaml"
    path.write_text(text)
    return path


def load(path: Path) -> Note:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OldVersionWarning)
        return load_spec(path, Note).spec


def test_an_old_file_is_read_as_a_new_one_and_said_to_be_old(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    with pytest.warns(OldVersionWarning, match=r"version 1 of a note file is old; `muarl check"):
        note = load_spec(path, Note).spec
    assert note == load(written(tmp_path, NEW))
    assert note.title == "012"
    two = OLD.replace("version: 1", "version: 2").replace("titel", "title")
    assert load(written(tmp_path, two)) == note


def test_it_is_said_once(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        load_spec(path, Note)
        load_spec(path, Note)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"012"', "12", "4:8: 'title' must be text, got 12; put it in quotes"),
        ("points: 3", "points: x", "7:24: 'score' must be a whole number, got 'x'"),
        ("points: 2 ", "points: x ", "9:13: 'score' must be a whole number, got 'x'"),
        ("titel", "tite", "3:1: missing field 'title'"),
        ("titel", "tite", "4:1: unknown field 'tite'; did you mean 'title'?"),
    ],
)
def test_problems_of_an_old_file_stand_where_they_are_in_it(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    path = written(tmp_path, OLD.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        load(path)
    assert problem in said(caught.value)


def test_a_fixed_file_keeps_comments_quotes_and_order(tmp_path: Path) -> None:
    path = written(tmp_path, OLD)
    mending = mended(path)
    assert mending.changes == ("version 1 became 3", "the first line names schemas/note.v3.json")
    mending.write()
    assert path.read_text() == NEW
    assert mended(path).changes == ()


def test_the_command_line_says_it_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, OLD)
    with warnings_in_lines():
        warnings.simplefilter("default")
        load_spec(path, Note)
    assert capsys.readouterr().err == (
        f"muarl: {path}: version 1 of a note file is old; "
        f"`muarl check --fix {path}` rewrites it as version 3\n"
    )
    assert main(["check", str(path), "--fix"]) == 0
    assert path.read_text() == NEW
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: version 1 became 3",
        f"{path}: the first line names schemas/note.v3.json",
    ]


def test_a_newer_file_says_what_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path, NEW.replace("version: 3", "version: 4"))
    with pytest.raises(SpecError) as caught:
        load_spec(path, Note)
    assert said(caught.value) == [
        (
            f"3:10: version 4 is newer than muarl {__version__} reads (3); write 3, or use the muarl "
            "that the file was written for"
        )
    ]


@pytest.mark.parametrize("version", ["0", "-1", "x", "1.0", "null"])
def test_a_version_that_never_was_is_refused(tmp_path: Path, version: str) -> None:
    path = written(tmp_path, NEW.replace("version: 3", f"version: {version}"))
    with pytest.raises(SpecError, match="'version' must be"):
        load_spec(path, Note)


def test_every_version_of_every_kind_can_be_brought_to_the_newest() -> None:
    for kind, model in KINDS.items():
        assert sorted(UPGRADES[kind]) == list(range(1, newest_version(model)))


def test_a_broken_old_file_is_only_read(tmp_path: Path) -> None:
    path = written(tmp_path, OLD.replace("who: bob", "who: bob\n    who: eve"))
    with pytest.raises(SpecError) as caught:
        load(path)
    assert "9:5: duplicate key 'who'; first given on line 8" in said(caught.value)


@pytest.mark.parametrize("version", ["true", "1.0", "1e0"])
def test_what_python_takes_for_1_is_no_version(tmp_path: Path, version: str) -> None:
    (tmp_path / "tasks.yaml").write_text(f"version: {version}\ndomain: shop\ntasks: []\n")
    with pytest.raises(SpecError) as caught:
        load_spec(tmp_path / "tasks.yaml", TasksFile)
    assert "'version' must be 1, got " in said(caught.value)[0]
    assert said(caught.value)[0].endswith("; write 1")


def test_in_python_a_version_is_a_whole_number_too() -> None:
    with pytest.raises(ValidationError, match="Input should be 1"):
        TasksFile(version=True, domain="shop", tasks=[])  # type: ignore[arg-type]
