"""`muarl top`: where a run stands, for who looks at its folder from another process."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bad_input import InProcess

from muarl.cli import top
from muarl.cli._standing import FILE, Course, read_standing, written
from muarl.cli.top import Watched, sparkline
from muarl.observe import Counters, RunLog
from muarl.scheduler import EpisodePlan
from muarl.testing import build_episode, build_key


def course_of(folder: Path) -> tuple[Course, Counters]:
    """A run's course, a few dialogues into its second phase."""
    folder.mkdir(exist_ok=True)
    counters = Counters()
    course = Course(counters)
    course.phase("floor", 3)
    course.phase("GRPO", 40)
    plan = EpisodePlan(build_key())
    for reward in (1.0, 0.0):
        counters.attempt_started(plan)
        counters.attempt_ended(plan, build_episode(plan.key, reward=reward), None)
    course.advance(7, reward=0.5)
    course.note("a note\x1b[2J")
    lines = [{"kind": "iteration", "iteration": i, "reward_mean": i / 8} for i in range(8)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return course, counters


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A run that goes on, while the test does."""
    course, _ = course_of(tmp_path / "run")
    with RunLog(tmp_path / "run" / "log.jsonl") as log:
        log.say("run_begins")
        with written(course, tmp_path / "run"):
            while not (tmp_path / "run" / FILE).exists():
                threading.Event().wait(0.01)
            yield tmp_path / "run"


def test_what_is_shown_once_is_phases_dialogues_rewards_and_notes(
    muarl: InProcess, folder: Path
) -> None:
    said = muarl("top", str(folder), "--once").out
    assert re.search(r"floor +\S+ +3/3", said)
    assert re.search(r"GRPO +\S+ +7/40 .*reward 0.500", said)
    assert "success    0.500 of 2 scored" in said
    assert "reward     ▁▂▃▄▅▆▇█  0.000 to 0.875" in said
    assert "a note\\x1b[2J" in said
    assert "ended, " not in said
    assert "the run" not in said


def test_a_program_gets_the_same_as_json(muarl: InProcess, folder: Path) -> None:
    told = json.loads(muarl("top", str(folder), "--json").out)
    assert told["phases"][-1] | {"seconds": 0.0} == {
        "name": "GRPO",
        "total": 40,
        "done": 7,
        "seconds": 0.0,
        "figures": "reward 0.500",
    }
    assert told["ended"] is None
    assert len(told["rewards"]) == 8


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("run_ends", "the run has ended"),
        ("run_stops", "the run was stopped"),
        ("run_fails", "the run has failed"),
    ],
)
def test_it_ends_when_the_run_has_and_says_how(
    muarl: InProcess, tmp_path: Path, event: str, words: str
) -> None:
    course, _ = course_of(tmp_path)
    with RunLog(tmp_path / "log.jsonl") as log, written(course, tmp_path):
        log.say(event)
    said = muarl("top", str(tmp_path))
    assert said.code == 0
    assert said.out.splitlines()[-1] == words
    assert "GRPO: 7/40  reward 0.500" in said.out


def test_a_run_that_was_killed_is_said_to_be_gone(muarl: InProcess, folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    other = folder.with_name("killed")
    other.mkdir()
    told = json.loads((folder / FILE).read_bytes()) | {"pid": dead.pid}
    (other / FILE).write_text(json.dumps(told))
    assert "the run is gone" in muarl("top", str(other)).out


def test_a_run_that_is_silent_is_said_to_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Watched(folder)
    assert not seen.silent_s
    monkeypatch.setattr(top, "_SILENCE_S", -1.0)
    assert seen.silent_s


def test_a_folder_that_says_nothing_is_refused(muarl: InProcess, tmp_path: Path) -> None:
    muarl("top", tmp_path).refuses(2, "nothing there says where a run stands")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_what_says_where_a_run_stands_is_called_damaged_if_it_is(
    muarl: InProcess, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / FILE).write_bytes(content)
    muarl("top", tmp_path).refuses(1, f"{tmp_path / FILE}: damaged: ", "muarl report")


def test_while_a_file_is_torn_what_it_said_before_stands(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / FILE).write_bytes((folder / FILE).read_bytes())
    seen = Watched(other)
    (other / FILE).write_bytes(b'{"at"')
    assert read_standing(other) is None
    assert seen.standing.phases[-1].name == "GRPO"


def test_metrics_that_are_damaged_spoil_nothing_else_of_what_is_shown(
    muarl: InProcess, folder: Path
) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "iteration", "iteration": 8, "reward_mean": "high"}\n')
    assert "0.000 to 0.875" in muarl("top", folder, "--once").out
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("no line\n{}\n")
    shown = muarl("top", folder, "--once").out
    assert "metrics.jsonl:10: not a JSON object" in shown
    assert "GRPO" in shown
    assert "success" in shown


NESTED = '{"kind": "iteration", "event": "x", "at": 1, "a": ' + "[" * 5_000 + "]" * 5_000 + "}\n"
"""Deeper than any reader goes."""


@pytest.mark.parametrize("name", [FILE, "metrics.jsonl", "log.jsonl"])
def test_a_file_nested_without_end_is_as_any_damaged_one(
    muarl: InProcess, folder: Path, tmp_path: Path, name: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for each in (FILE, "metrics.jsonl", "log.jsonl"):
        (other / each).write_bytes((folder / each).read_bytes())
    with (other / name).open("w" if name == FILE else "a") as file:
        file.write(NESTED)
    shown = muarl("top", other, "--once")
    if name == FILE:
        assert f"{other / FILE}: damaged: " in shown.lines[-1]
    else:
        assert "GRPO" in shown.out


def test_many_rewards_are_drawn_as_means_of_neighbours() -> None:
    assert sparkline([0.0, 0.5, 1.0], 40) == "▁▅█"
    assert sparkline([0.5] * 3, 40) == "▁▁▁"
    assert len(sparkline([float(i) for i in range(1000)], 40)) == 40
    assert sparkline([0.0, 0.0, 1.0, 1.0], 2) == "▁█"


@contextmanager
def terminal(columns: int) -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal of so many columns."""
    ours, theirs = pty.openpty()
    resize(ours, columns)
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def resize(descriptor: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def read_until(descriptor: int, wanted: bytes, seen: bytes = b"") -> bytes:
    """What a terminal is sent, up to and with `wanted`."""
    while wanted not in seen:
        seen += os.read(descriptor, 65_536)
    return seen


@contextmanager
def top_of(folder: Path, theirs: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`muarl top` on a pseudo-terminal, whose size is the terminal's and not that of the tests' own."""
    sizes = ("COLUMNS", "LINES")
    outer = {name: value for name, value in os.environ.items() if name not in sizes}
    with subprocess.Popen(
        [sys.executable, "-m", "muarl.cli", "top", str(folder)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**outer, "TERM": "xterm", **environment},
    ) as watching:
        os.close(theirs)
        try:
            yield watching
            assert watching.wait(240) == 0
        finally:
            watching.kill()


def test_in_a_terminal_it_survives_a_resize_and_ends_with_the_run(tmp_path: Path) -> None:
    course, _ = course_of(tmp_path)
    with (
        terminal(120) as (ours, theirs),
        RunLog(tmp_path / "log.jsonl") as log,
        written(course, tmp_path),
    ):
        while read_standing(tmp_path) is None:
            threading.Event().wait(0.01)
        with top_of(tmp_path, theirs):
            read_until(ours, b"7/40")
            resize(ours, 30)
            narrow = read_until(ours, b"\xe2\x80\xa6")  # an ellipsis: cut at the new width
            assert b"Traceback" not in narrow
            log.say("run_ends")
            read_until(ours, b"the run has ended")


def test_a_terminal_of_ascii_is_shown_what_it_can_show(tmp_path: Path) -> None:
    course, _ = course_of(tmp_path)
    with written(course, tmp_path):
        while read_standing(tmp_path) is None:
            threading.Event().wait(0.01)
    (tmp_path / "log.jsonl").write_text('{"event": "run_ends"}\n')
    with terminal(30) as (ours, theirs), top_of(tmp_path, theirs, PYTHONIOENCODING="ascii"):
        shown = read_until(ours, b"the run has ended")
        assert b"Traceback" not in shown
        assert b"\\u2026" in shown
