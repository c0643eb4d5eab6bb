"""Exit code 0 is said by a verb, and by nobody else: what ends the process before has failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from muarl.cli._telling import remark

FAILED = 1
"""Exit code of a process that was ended with 0 before its verb had a result."""


@contextmanager
def no_early_success() -> Iterator[None]:
    """Within the block `os._exit(0)` ends this process with 1, and says who called it.

    A domain's tool, expert, generator or world runs in this process, and could make a script that looks
    at the exit code take an unfinished check for a sound domain. Children made by `os.fork` end as they
    like.
    """
    end, process = os._exit, os.getpid()

    def ended(status: int) -> None:
        if status == 0 and os.getpid() == process:
            try:
                remark(f"muarl: os._exit(0) was called{_place()}: it ended muarl without a result")
            finally:
                end(FAILED)
        end(status)

    os._exit = ended  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = end


def _place() -> str:
    """The line of a domain's Python that is being run, or ""."""
    from muarl.authors import PACKAGES, shown_file  # loads anyio, which most verbs do without

    frame = sys._getframe(1)
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith(PACKAGES):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return ""
    code = frame.f_code
    return f" ({shown_file(code.co_filename)}:{frame.f_lineno}, in {code.co_name})"
