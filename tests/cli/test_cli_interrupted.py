"""Ctrl-C and SIGTERM: what runs ends, whatever it does, and nothing that it started is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bad_input import SOURCE, serve_by
from spec_files import spoil

from muarl.record import read_journal

CANCEL = 'world["orders"][order_id]["status"] = "cancelled"'
STUBBORN = (
    "import os, signal, sys, time;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "open(sys.argv[1], 'w').write(str(os.getpid()));"
    "time.sleep(600)"
)


@contextmanager
def muarl(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command line in a process of its own, which does not outlive the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "muarl.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> str:
    """What a file holds, as soon as it holds something."""
    deadline = time.monotonic() + 240
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.05)
    return path.read_text()


def test_a_run_whose_loop_stands_still_is_ended_by_a_second_signal(
    run_file: Path, out: Path
) -> None:
    mark = out.with_name("mark")
    spin = f"open({str(mark)!r}, 'w').write('x')\n        while True: pass"
    spoil(run_file.parent / "tools.py", CANCEL, spin)
    with muarl("rollout", run_file, "--expert", "--out", out) as process:
        wait_for(mark)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(read_journal(out / "episodes.journal")) == []


def test_code_that_catches_everything_is_ended_by_a_third_signal() -> None:
    code = (
        "import os, signal; from muarl.cli._signals import Requests\n"
        "with Requests().heard():\n"
        "    for _ in range(3):\n"
        "        try: os.kill(os.getpid(), signal.SIGINT)\n"
        "        except BaseException: pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False
    )
    assert done.returncode == 130


@pytest.mark.parametrize("looks", [False, True])
def test_a_run_whose_loop_stands_still_says_at_the_first_signal_how_to_end_it(looks: bool) -> None:
    """A task generator without end, say: without a word it would seem that nobody has heard."""
    code = (
        "import os, signal; from muarl.cli._signals import Requests\n"
        "requests = Requests()\n"
        "with requests.heard():\n"
        f"    {'requests.look()' if looks else 'pass'}\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=True,
    )
    assert (b"Ctrl-C again ends it at once" in done.stderr) is not looks


def wait_until_gone(process: int) -> None:
    """It was killed, but may not have fallen yet, or lie there until init looks after it."""
    stat = Path(f"/proc/{process}/stat")
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.05)
    pytest.fail(f"process {process} outlives the verb")


@pytest.mark.parametrize("verb", ["check", "rollout"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_started_does_not_outlive_a_verb_that_is_told_to_end(
    verb: str, number: signal.Signals, run_file: Path, out: Path
) -> None:
    mark = out.with_name("mark")
    serve_by(run_file.parent, [sys.executable, "-c", STUBBORN, str(mark)])
    arguments = [run_file.parent] if verb == "check" else [run_file, "--expert", "--out", out]
    with muarl(verb, *arguments) as process:
        server = int(wait_for(mark))
        process.send_signal(number)
        _, err = process.communicate(timeout=240)
    # Before it stands what the verb was at.
    assert (process.returncode, err.splitlines()[-1]) == (130, "muarl: interrupted")
    assert "Traceback" not in err
    wait_until_gone(server)
