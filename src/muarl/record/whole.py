"""Folders that are there as a whole or not at all, whenever the process is killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muarl.record.saving import saving


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A fresh folder to fill, which becomes `path` if the block ends well.

    It is written beside, flushed to disk and only then renamed. What a killed process left of it
    is removed by the next that writes the same folder. A folder that is there is replaced; killed
    between the two, neither is there.

    Raises:
        RecordError: The disk refused.
    """
    draft = path.with_name(f".{path.name}.writing")
    with saving(path):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        yield draft
        for file in draft.rglob("*"):
            flush(file)
        flush(draft)
        if path.exists():
            shutil.rmtree(path)
        draft.rename(path)
        flush(path.parent)


def flush(path: Path) -> None:
    """Make a file's content, or a folder's names, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
