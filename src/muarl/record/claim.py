"""One writer for a folder, from the moment it is chosen to the moment it is done with."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from muarl.errors import RecordError

LOCK = ".lock"
"""The file that a folder holds while it is claimed; what a killed process left of it claims nothing."""


@contextmanager
def claimed(folder: Path, *, make: bool = True) -> Iterator[None]:
    """Be the only one that claims a folder while the block runs.

    The claim goes when this process goes, however it does. A folder that was made for it and holds
    nothing at the end is removed.

    Args:
        folder: The folder.
        make: Make it if it is not there; else there is nothing to claim, and none is.

    Raises:
        RecordError: Another one has claimed it.
        OSError: It is none, or cannot be made or written.
    """
    made = make and not folder.exists()
    if made:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.exists():
        yield
        return
    descriptor = _lock(folder)
    try:
        yield
    finally:
        if _is_there(descriptor, folder):  # not where the folder was replaced by another
            (folder / LOCK).unlink()  # while it is held: see `_lock`
        os.close(descriptor)
        if made:
            with suppress(OSError):  # it holds something, as it should
                folder.rmdir()


def _lock(folder: Path) -> int:
    """The descriptor of the folder's lock, which is held.

    Its last holder may have removed the file between our opening it and locking it: then the lock
    is of a file that nobody else finds, and we try again.
    """
    while True:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(descriptor, folder):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise RecordError(
                f"{folder}: another run is writing there. Wait until it has ended, or give this "
                "one another folder"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_there(descriptor: int, folder: Path) -> bool:
    """Whether the lock that is open is the one that others find."""
    try:
        return os.path.samestat(os.fstat(descriptor), (folder / LOCK).stat())
    except FileNotFoundError:
        return False
