"""What a machine has: Python, processors, memory, disk, GPUs, programs."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from muarl.doctor.finding import Finding, State
from muarl.version import __version__

_found = partial(Finding, "machine")
_GIB = 1 << 30
_LITTLE_DISK = 2 * _GIB
"""A checkpoint of a model of 135M parameters with its optimizer takes 1.5 GiB."""
_LITTLE_MEMORY = 2 * _GIB
"""The quickstart's run takes about one."""
_SECONDS = 20.0
"""A driver that is being loaded answers after a few."""


def machine(folder: Path) -> Iterator[Finding]:
    """Look at this machine.

    Args:
        folder: Where runs would be written.
    """
    python = f"Python {platform.python_version()}, {sys.executable}"
    yield _found("muarl", State.OK, f"{__version__}, {python}, {platform.platform()}")
    yield _processors()
    yield _disk(folder)
    yield from _gpus()
    yield _node()


def _processors() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    words = f"{cores} processor cores, {memory / _GIB:.1f} GiB of memory"
    if memory < _LITTLE_MEMORY:
        return _found("processor", State.WRONG, words, "the quickstart alone takes about 1 GiB")
    return _found("processor", State.OK, words)


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    words = f"{free / _GIB:.1f} GiB free at {folder.resolve()}"
    if free < _LITTLE_DISK:
        remedy = "make room: a run keeps a journal of all episodes, and checkpoints"
        return _found("disk", State.WRONG, words, remedy)
    if not os.access(folder, os.W_OK):
        return _found("disk", State.WRONG, f"{folder.resolve()} cannot be written to", "chmod u+w")
    return _found("disk", State.OK, words)


def _gpus() -> Iterator[Finding]:
    cards = _cards()
    if not cards:
        yield _found("gpu", State.MISSING, "no NVIDIA driver answers; all runs on the processor")
        return
    yield _found("gpu", State.OK, "; ".join(cards))
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    if not torch.cuda.is_available():
        yield _found(
            "torch",
            State.WRONG,
            f"torch {torch.__version__} sees no GPU, though the driver does",
            "install a build of torch for its CUDA: pip install --force-reinstall torch",
        )


def _cards() -> list[str]:
    """Name and memory of each card, as the driver's own tool says; none where there is no driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return said.stdout.split("\n")[:-1]


def _node() -> Finding:
    node = shutil.which("node")
    if node is None:
        words = "no Node.js; only tool servers that are npm packages need it"
        return _found("node", State.MISSING, words, "apt-get install nodejs npm")
    return _found("node", State.OK, f"{node}, for tool servers that are npm packages")
