"""Runs scripts as `python SCRIPT` would, in forks of one process that has imported what is slow to import.

A program of its own, so that no thread is alive where it forks. It reads requests and answers each, a line
of JSON each:

    {"script": PATH, "arguments": [...], "folder": PATH}
    {"code": 0, "out": ..., "err": ...}
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Ended(NamedTuple):
    """How a script ended."""

    code: int
    out: str
    err: str


class Scripts:
    """The program, as a test has it."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def run(self, script: Path, arguments: Sequence[str], folder: Path) -> Ended:
        """Run a script in a folder, and wait for it."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        asked = {"script": str(script), "arguments": list(arguments), "folder": str(folder)}
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        return Ended(**json.loads(self._program.stdout.readline()))


@contextmanager
def forked_scripts(environment: dict[str, str]) -> Iterator[Scripts]:
    """Have the program for the length of the block."""
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        yield Scripts(program)
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


def _answer_requests() -> int:
    """Answer until there are no more; in a fork, the exit code of its script."""
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


def _run(script: str, arguments: list[str], folder: str) -> int:
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    os.chdir(folder)
    try:
        runpy.run_path(script, run_name="__main__")
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
