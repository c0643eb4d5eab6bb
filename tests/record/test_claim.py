"""A folder has one writer at a time, and keeps nothing of the claim."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from muarl.errors import RecordError, SetupError
from muarl.record import JournalWriter
from muarl.record.claim import LOCK, claimed
from muarl.record.placing import placed


def test_a_folder_is_claimed_once_and_is_free_again_afterwards(tmp_path: Path) -> None:
    with claimed(tmp_path):
        for _ in range(2):
            with (
                pytest.raises(RecordError, match="another run is writing there"),
                claimed(tmp_path),
            ):
                pytest.fail("it was claimed twice")
    with claimed(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("filled", [True, False])
def test_a_folder_that_was_made_stays_only_if_something_is_in_it(
    filled: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "below" / "run"
    with claimed(folder):
        if filled:
            (folder / "result").write_text("")
    assert folder.exists() == filled


def test_there_may_be_nothing_to_claim(tmp_path: Path) -> None:
    with claimed(tmp_path / "run", make=False):
        assert not (tmp_path / "run").exists()


def test_a_lock_that_a_killed_process_left_claims_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("")
    with claimed(tmp_path):
        pass


def test_a_lock_whose_file_was_removed_meanwhile_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder ends between our opening the file and our locking it."""
    opened = os.open

    def opens(path: Path, *flags: int, **more: int) -> int:
        descriptor = opened(path, *flags, **more)
        monkeypatch.undo()
        (tmp_path / LOCK).unlink()
        return descriptor

    monkeypatch.setattr(os, "open", opens)
    with (
        claimed(tmp_path),
        pytest.raises(RecordError, match="another run"),
        claimed(tmp_path),
    ):
        pytest.fail("it was claimed twice")


def test_a_claim_leaves_the_lock_of_a_folder_that_took_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with claimed(folder):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / LOCK).write_text("another's")
    assert (folder / LOCK).read_text() == "another's"


def make(path: Path, *, overwrite: bool) -> None:
    with placed(path, overwrite=overwrite, marker="spec") as fresh:
        fresh.mkdir()
        (fresh / "spec").write_text("new")


def test_results_replace_no_folder_that_is_being_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    make(folder, overwrite=False)
    (folder / "spec").write_text("old")
    with claimed(folder), pytest.raises(RecordError, match="another run is writing there"):
        make(folder, overwrite=True)
    with (
        JournalWriter(folder / "episodes.journal"),
        pytest.raises(RecordError, match="another writer has this journal open"),
    ):
        make(folder, overwrite=True)
    assert (folder / "spec").read_text() == "old"
    make(folder, overwrite=True)
    assert (folder / "spec").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_came_meanwhile_is_not_replaced_unless_asked_to(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def be_overtaken() -> None:
        with placed(folder, overwrite=False, marker="spec") as fresh:
            fresh.mkdir()
            make(folder, overwrite=False)
            (folder / "spec").write_text("the other's")

    with pytest.raises(SetupError, match="is there already"):
        be_overtaken()
    assert (folder / "spec").read_text() == "the other's"
