"""What a verb answers goes to stdout, and nothing else does: other programs read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TextIO

_stdout: ContextVar[TextIO | None] = ContextVar("muarl_stdout", default=None)


@contextmanager
def answering() -> Iterator[None]:
    """Within the block only `answer` writes to stdout.

    What a domain's code prints, in a tool, an expert or at import, goes to stderr.
    """
    token = _stdout.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout.reset(token)


def answer(text: object) -> None:
    """Print a line of what was asked for."""
    print(text, file=_stdout.get() or sys.stdout)
