"""What a verb answers goes to stdout, and nothing else does: other programs read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TextIO

from muarl.cli._printable import printable
from muarl.cli._quiet import silence
from muarl.errors import MuarlError

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


@contextmanager
def lent_stdout() -> Iterator[None]:
    """Within the block stdout is itself again, for a protocol that takes it over."""
    with redirect_stdout(_stdout.get() or sys.stdout):
        yield


class AnswerError(MuarlError):
    """The answer could not be printed; "" where its reader left, as `head` does."""


def answer(text: object) -> None:
    """Print a line of what was asked for.

    Raises:
        AnswerError: It cannot be written, or nobody reads it any more.
    """
    out = _stdout.get() or sys.stdout
    try:
        print(_encodable(str(text), out), file=out, flush=True)  # else Python finds out at its end
    except OSError as error:
        silence(out)
        if isinstance(error, BrokenPipeError):
            raise AnswerError("") from error
        raise AnswerError(
            f"cannot print the answer ({error.strerror}). What was saved is safe: "
            "lead stdout elsewhere"
        ) from error


def _encodable(text: str, out: TextIO) -> str:
    """The text, printable, with what the encoding of `out` lacks spelled out, as Python does on stderr."""
    words = printable(text)
    if not out.encoding:  # it keeps texts, not bytes
        return words
    return words.encode(out.encoding, "backslashreplace").decode(out.encoding)
