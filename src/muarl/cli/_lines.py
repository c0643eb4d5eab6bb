"""Lines from a file descriptor, waited for without a thread: cancelled, nothing of it lives on."""

from __future__ import annotations

import errno
import os

import anyio
import anyio.lowlevel

_CHUNK = 65_536


class Lines:
    """The lines that a descriptor gives, as they come: a terminal, a pipe or a file.

    Args:
        fd: Read from, never closed. None has no lines, as a closed stdin has not.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._held = b""

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        line = await self.next()
        if line is None:
            raise StopAsyncIteration
        return line

    async def next(self) -> str | None:
        """The next line without its end, or None where there are no more."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0 and self._fd is not None:
            searched = len(self._held)
            await _readable(self._fd)
            chunk = os.read(self._fd, _CHUNK)
            if not chunk:
                self._fd = None
            self._held += chunk
        if end < 0:
            end = len(self._held)
            if not end:
                return None
        line, self._held = self._held[:end], self._held[end + 1 :]
        return line.decode("utf-8", "replace").removesuffix("\r")


async def _readable(fd: int) -> None:
    await anyio.lowlevel.checkpoint()
    try:
        await anyio.wait_readable(fd)
    except OSError as error:
        if error.errno != errno.EPERM:  # what a file says, which is always readable
            raise
