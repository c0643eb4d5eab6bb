"""Files that somebody named, opened so that reading them comes to an end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def opened_file(path: Path) -> BinaryIO:
    """Open a file for reading, or a pipe that somebody writes to, as `<(command)` is one.

    A pipe without a writer, for which opening waits for ever, is empty. A folder has nothing to read, and
    a device such as `/dev/zero` has no end.

    Raises:
        OSError: There is no such file, it may not be read, or is of another kind.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(number).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "a device, and no file", str(path))
        os.set_blocking(number, True)
        return open(number, "rb")
    except BaseException:
        os.close(number)
        raise
