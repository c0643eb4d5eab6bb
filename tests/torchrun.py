"""Starts a program as several ranks on this machine, over gloo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def torchrun(ranks: int, *command: object, cwd: Path | None = None) -> tuple[int, str]:
    """Exit code, and what the ranks and torchrun said on stderr.

    Args:
        ranks: How many.
        command: A file of Python, or `-m` and a module, and its arguments.
        cwd: Where.
    """
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(ranks), *map(str, command)),
        ],
        cwd=cwd,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(_paths()),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, said = process.communicate(timeout=300)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def _paths() -> Sequence[str]:
    known = [str(ROOT / "src"), str(ROOT / "tests")]
    return [*known, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
