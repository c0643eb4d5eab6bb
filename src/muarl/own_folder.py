"""Folders that go with the process that made them, also where it was killed.

Whoever makes one holds a lock in it, which ends with the process, however that ends. Whoever makes
the next one in the same place takes away those that nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_HELD = ".held"
"""The file that is locked while the folder is in use."""


@contextmanager
def own_folder(place: str | Path | None = None, prefix: str = "muarl-") -> Iterator[Path]:
    """Within the block there is a new folder, which only this user can look into.

    Args:
        place: Where; None: among the temporary files.
        prefix: What its name begins with; folders of killed processes are known by it.

    Raises:
        OSError: There is no room for it.
    """
    place = Path(tempfile.gettempdir() if place is None else place)
    _take_away_what_nobody_holds(place, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        descriptor = _hold(folder)
        try:
            yield folder
        finally:
            # Before the lock goes. A process that was killed may leave children that still write.
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hold(folder: Path) -> int:
    """A locked file, which is never found unlocked: it gets its name when it is locked."""
    fresh = folder / f"{_HELD}.new"
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a file system without locks: what is left there is left
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(folder / _HELD)
    return descriptor


@cache
def _take_away_what_nobody_holds(place: Path, prefix: str) -> None:
    """Once for each place: what is killed while this process lives waits for the next one."""
    found: list[Path] = []
    with suppress(OSError):
        found += [path for path in place.iterdir() if path.name.startswith(prefix)]
    for folder in found:
        with suppress(OSError):  # of another user; gone meanwhile; of no interest to us
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            descriptor = os.open(folder / _HELD, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
