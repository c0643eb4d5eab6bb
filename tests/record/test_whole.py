"""A folder is there as a whole or not at all (law L9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.errors import RecordError
from muarl.record import whole
from muarl.record.whole import whole_folder


class Killed(BaseException):
    pass


def fill(path: Path, text: str) -> None:
    with whole_folder(path) as draft:
        (draft / "a").write_text(text)
        (draft / "b").write_text(text)


def content(path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in path.iterdir()}


def test_a_folder_is_made_and_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "far" / "model"
    fill(target, "old")
    (target / "c").write_text("of the old one")
    fill(target, "new")
    assert content(target) == {"a": "new", "b": "new"}
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("before", [True, False])
def test_killed_within_or_at_its_end_what_was_there_is_whole_L9(
    before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    if before:
        fill(target, "old")

    def die(*_: object) -> None:
        raise Killed

    def fill_half() -> None:
        with whole_folder(target) as draft:
            (draft / "a").write_text("torn")
            raise Killed

    with pytest.raises(Killed):
        fill_half()
    with monkeypatch.context() as patch:
        patch.setattr(whole, "flush", die)
        with pytest.raises(Killed):
            fill(target, "new")
    assert target.exists() == before
    if before:
        assert content(target) == {"a": "old", "b": "old"}
    fill(target, "new")
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_that_says_no_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        fill(tmp_path / "file" / "model", "x")
