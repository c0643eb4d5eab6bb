"""Code of a domain that has no end: named after some seconds, and ended by a second Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from bad_input import InProcess
from spec_files import spoil

from muarl.cli._telling import remark

ENDLESS = (
    "from test_endless_code import Loop\n"
    "def generate(split, seed, count):\n"
    "    while True: Loop.turns += 1\n"
)


class Loop:
    """The one without an end.

    Attributes:
        turns: How often it went round. Between two turns Python runs what a signal asks for.
    """

    turns = 0


@pytest.fixture
def endless(run_file: Path) -> Path:
    """A domain whose task generator never returns."""
    spoil(
        run_file.parent / "domain.yaml",
        "files: [tasks.yaml, held_out.yaml]",
        "python: gen.py:generate\n  splits: {train: 1, held_out: 1}",
    )
    (run_file.parent / "gen.py").write_text(ENDLESS)
    return run_file.parent


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_check_whose_generator_has_no_end(
    muarl: InProcess, endless: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muarl.cli._waiting._AFTER_S", 0.05)
    monkeypatch.setattr("muarl.cli._waiting._PERIOD_S", 0.01)
    said = threading.Event()

    def says(text: str) -> None:
        remark(text)
        if ", in generate" in text:  # on a slow machine the import of the file is told, too
            said.set()

    monkeypatch.setattr("muarl.cli._waiting.remark", says)

    def press() -> None:
        assert said.wait(240)
        os.kill(os.getpid(), number)
        before = Loop.turns
        while Loop.turns < before + 2:  # two signals at once are one
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    pressing = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's `&` ignores it
    try:
        pressing.start()
        ending = muarl("check", endless)
        pressing.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ending.code == 130, ending.lines
    assert ending.lines[-1] == "muarl: interrupted"
    (waits,) = [line for line in ending.lines if ", in generate" in line]
    assert waits.startswith("still waiting for generate ")
    assert "gen.py:3, in generate" in waits


@pytest.mark.parametrize("offline", [True, False])
def test_check_finds_a_broken_loop_of_a_run(
    muarl: InProcess, run_file: Path, offline: bool
) -> None:
    spoil(run_file, "rollout: {", "rollout: {loop: led.py:lead, ")
    for text, says in (
        ("import nothing_of_the_kind\n\nasync def lead(context): ...\n", "nothing_of_the_kind"),
        ("def lead(context): ...\n", "is no async function of one argument"),
    ):
        (run_file.parent / "led.py").write_text(text)
        ending = muarl("check", run_file, *(["--offline"] if offline else []))
        ending.refuses(2, f"{run_file}:6:", says)
