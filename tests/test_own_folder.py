"""Folders of a process's own go with it, whatever ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muarl.own_folder import own_folder

HOLDS = """
import sys
from muarl.own_folder import own_folder
with own_folder(sys.argv[1]) as folder:
    (folder / "world.json").write_text("{}")
    print(folder.name, flush=True)
    sys.stdin.read()
"""


def holder(place: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that has a folder there, and its name."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_what_a_killed_process_left_goes_when_the_next_one_makes_its_own_L7(tmp_path: Path) -> None:
    (tmp_path / "muarl-of-somebody-else").mkdir()
    living, held = holder(tmp_path)
    killed, left = holder(tmp_path)
    with living, killed:
        killed.kill()
        killed.wait()
        assert (tmp_path / left / "world.json").exists(), "nobody could take it away yet"
        with own_folder(tmp_path) as mine:
            names = {path.name for path in tmp_path.iterdir()}
            assert names == {"muarl-of-somebody-else", held, mine.name}
            assert (tmp_path / held / "world.json").exists()
        living.communicate("")
    assert [path.name for path in tmp_path.iterdir()] == ["muarl-of-somebody-else"]


def test_a_folder_goes_at_the_end_of_its_block_whatever_ends_it(tmp_path: Path) -> None:
    def fails() -> None:
        with own_folder(tmp_path, "x-") as mine:
            assert mine.name.startswith("x-")
            (mine / "deep").mkdir()
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not list(tmp_path.iterdir())
