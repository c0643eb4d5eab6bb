"""Files of a run's folder that are no files: reading a FIFO would wait for ever, a folder cannot be read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from muarl.errors import NoRunError, RecordError

_FILES = (
    "spec.resolved.yaml",
    "synth.yaml",
    "versions.json",
    "plan.json",
    "domain.json",
    "now.json",
    "grid.json",
    "metrics.jsonl",
    "log.jsonl",
    "batches.jsonl",
    "learned.jsonl",
    "episodes.journal",
)
"""What of a run's folder is read as a file; some of them may be missing."""


def refuse_no_run(folder: Path, *has: str) -> None:
    """Make sure that a folder is there, and holds what makes it the folder of a run.

    Args:
        folder: As it was named.
        has: Names of files.

    Raises:
        NoRunError: It is not there, is no folder, or holds no such file.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "no such run folder"
        raise NoRunError(f"{folder}: {what}; give the folder that `muarl train` printed")
    for name in has:
        if not (folder / name).exists():
            raise NoRunError(f"{folder}: no {name} in it; expected the folder of a run")


def refuse_odd_files(folder: Path) -> None:
    """Make sure, before anything of a run is read, that each of its files can be.

    Raises:
        RecordError: One is a folder, a FIFO or the like, or may not be read.
    """
    for path in (folder / name for name in _FILES):
        try:
            mode = path.stat().st_mode
        except OSError:  # not there
            continue
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "no file"
            raise RecordError(
                f"{path}: is {what}, where a run has a file. Restore it from a copy, or move it away"
            )
        if not os.access(path, os.R_OK):
            raise RecordError(f"{path}: you may not read it; change its mode, or ask its owner")
