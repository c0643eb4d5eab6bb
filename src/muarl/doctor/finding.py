"""One thing that was looked at."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class State(StrEnum):
    """How it is with a thing."""

    OK = "ok"
    MISSING = "missing"
    """Not here; muarl does without, unless a run asks for it."""
    WRONG = "wrong"
    """Would stop what was asked about."""


class Finding(msgspec.Struct, frozen=True):
    """What was looked at, how it is, and what to do.

    Attributes:
        area: `machine`, `extras`, `plug-ins`, or `run`.
        name: What was looked at, such as `disk` or `lora`.
        state: How it is.
        words: What was seen.
        remedy: The command that mends it, or what to do in words; "" where nothing is to be done.
    """

    area: str
    name: str
    state: State
    words: str
    remedy: str = ""
