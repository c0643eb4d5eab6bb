"""A run's folder with something in a file's place: a typed message, no raw error, and nobody waits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_input import InProcess

from muarl.record.odd_files import _FILES


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("made", [_folder, os.mkfifo])
def test_what_is_no_file_in_a_files_place_is_refused_by_every_verb(
    muarl: InProcess, run_file: Path, made: Callable[[Path], None]
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 2]
    assert muarl(*roll, "--out", "whole").code == 0
    for name in _FILES:
        shutil.rmtree("odd", ignore_errors=True)
        shutil.copytree("whole", "odd")
        odd = Path("odd") / name
        odd.unlink(missing_ok=True)
        made(odd)
        for words in (
            "report odd",
            "export odd --out rows.jsonl --overwrite",
            "users odd",
            "top odd --once",
            "compare whole odd",
        ):
            ending = muarl(*words.split())
            said = "\n".join(ending.lines)
            assert ending.code in (1, 2), (words, name)
            assert "Traceback" not in said
            assert str(odd) in said or "no episodes.journal in it" in said, (words, said)
        again = muarl(*roll, "--out", "odd", "--resume")
        again.refuses(1, f"{odd}: is ", "where a run has a file")
