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


NAMED = {
    "check": ("pipe.yaml", [], "the file is empty"),
    "serve": ("pipe.yaml", [], "the file is empty"),
    "synth": ("pipe.yaml", [], "the file is empty"),
    "tasks": ("pipe.yaml", ["--out", "x.yaml"], "the file is empty"),
    "overlap": ("pipe.txt", ["pipe.txt"], "holds no task, dialogue or text"),
    "users": ("pipe.jsonl", [], "no dialogue in it"),
    "draft": (
        "pipe.txt",
        ["--out", "x", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"],
        "is empty",
    ),
}
"""Verb to a file that it is given, what else it needs, and what it says of an empty one."""


@pytest.mark.parametrize("verb", NAMED)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    verb: str, muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, more, says = NAMED[verb]
    os.mkfifo(name)
    ended = muarl(verb, name, *more)
    assert ended.code in (1, 2)
    assert says in ended.lines[0]


def test_a_pipe_that_somebody_writes_to_is_read(muarl: InProcess, run_file: Path) -> None:
    os.mkfifo("part.yaml")
    reading = os.open("part.yaml", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open("part.yaml", os.O_WRONLY)
    try:
        os.write(writing, b"version: 1\nseed: 4321\n")
        os.close(writing)
        ended = muarl("train", run_file, "part.yaml", "--dry-run")
    finally:
        os.close(reading)
    assert ended.code == 0, ended.lines
    assert "seed: 4321" in ended.out


@pytest.mark.parametrize("verb", ["check", "draft"])
def test_a_device_has_no_end_and_is_no_file(
    verb: str, muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, more, _ = NAMED[verb]
    muarl(verb, "/dev/zero", *more).refuses(2, "/dev/zero: cannot be read: a device, and no file")
