"""Remarks to nobody: a stderr that cannot be written costs a run its remarks, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


@contextmanager
def remarks_may_fail() -> Iterator[None]:
    """Within the block nothing that writes to stderr fails, whoever does: a full disk, a closed pipe.

    Progress, warnings, what a domain's code prints: what cannot be written is lost, as is all after.
    """
    before = sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        # Python has none where it was closed.
        sys.stderr = cast(TextIO, _Forgiving(nowhere if before is None else before))
        try:
            yield
        finally:
            sys.stderr = before


def silence(stream: TextIO) -> None:
    """Let a stream lead nowhere from now on, else Python fails on what it still holds at its end."""
    with suppress(OSError, ValueError):  # it may be closed, or no file of the system's
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


class _Forgiving:
    """A stream whose writes do not fail; in all else the stream that it stands for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
