"""Runs what `python` would, in forks of one process that has imported what is slow to import.

A program of its own, so that no thread is alive where it forks. It reads requests and answers each, a line
of JSON each:

    {"command": ["SCRIPT.py" or "-m", ...], "folder": PATH}
    {"code": 0, "out": ..., "err": ...}
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Forked:
    """The program, as a test has it."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def run(self, command: Sequence[str], folder: Path) -> Ended:
        """Run `python COMMAND` in a folder, and wait for it.

        Args:
            command: A script or `-m` and a module, and arguments.
            folder: Where.
        """
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        asked = {"command": list(command), "folder": str(folder)}
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        try:
            answer = self._program.stdout.readline()
        except BaseException:  # it takes too long: what it started ends with it
            os.killpg(self._program.pid, signal.SIGKILL)
            raise
        assert answer, f"the program ended before it answered: {command}"
        return Ended(**json.loads(answer))


@contextmanager
def forked(environment: dict[str, str]) -> Iterator[Forked]:
    """Have the program for the length of the block."""
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as program:
        yield Forked(program)
        program.stdin.close()  # which ends it


def _import_what_is_slow() -> None:
    import anyio  # noqa: F401
    import hypothesis  # noqa: F401
    import torch  # noqa: F401
    from transformers import Qwen3ForCausalLM  # noqa: F401

    import muarl.cli.train
    import muarl.compat.conformance
    import muarl.data.proof
    import muarl.train.loop  # noqa: F401

    gc.freeze()  # no fork looks through what was imported for garbage


def _answer_requests() -> int:
    """Answer until there are no more; in a fork, the exit code of its command."""
    _import_what_is_slow()
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
            child = os.fork()
            if child == 0:
                with open(os.devnull, "rb") as nothing:
                    for number, file in enumerate((nothing, out, err)):
                        os.dup2(file.fileno(), number)
                return _run(**asked)
            _, status = os.waitpid(child, 0)
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode(errors="replace"))
        ended = Ended(os.waitstatus_to_exitcode(status), *said)
        sys.stdout.write(json.dumps(ended._asdict()) + "\n")
        sys.stdout.flush()
    return 0


def _run(command: list[str], folder: str) -> int:
    """Carry it out, and leave to the end of the process what takes no time."""
    try:
        return _exit_code(command, folder)
    finally:
        # Verbs thaw what they froze, so that triton calls nothing leaked: 1.5 s for forty lines less.
        atexit.unregister(gc.unfreeze)


def _exit_code(command: list[str], folder: str) -> int:
    os.chdir(folder)
    is_module = command[0] == "-m"
    what, *arguments = command[is_module:]
    sys.argv = [what, *arguments]
    sys.path[0] = folder if is_module else str(Path(what).resolve().parent)
    try:
        if is_module:
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(what, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
            return 1
        return ended.code or 0
    except BaseException:  # noqa: BLE001 as Python itself does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_answer_requests())
