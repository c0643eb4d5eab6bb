"""Remarks and progress on stderr; like all that is shown, so that a terminal obeys nothing in it."""

from __future__ import annotations

import os
import sys
import time
from typing import IO

from muarl.cli._printable import printable

_BEGUN = time.monotonic()
_ERASED = "\r\x1b[K"


def remark(text: object) -> None:
    """Say something beside the answer."""
    print(printable(str(text)), file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """What is done now, and how long it took to come to it, from before the first slow import on."""
    remark(f"[{time.monotonic() - _BEGUN:6.1f} s] {text}")


def redraws(stream: IO[str]) -> bool:
    """Whether it leads to a terminal that draws over what it has shown: no log, whatever asks for colours."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def show_step(text: str) -> None:
    """The same, in a line that the next one replaces where stderr is a terminal."""
    if redraws(sys.stderr):
        print(f"{_ERASED}{printable(text)} ...", end="", file=sys.stderr, flush=True)
    else:
        tell(text)


def erase_step() -> None:
    """Take that line away."""
    if redraws(sys.stderr):
        print(_ERASED, end="", file=sys.stderr, flush=True)


def prompt(text: str) -> None:
    """Ask for a line."""
    print(printable(text), end="", file=sys.stderr, flush=True)
