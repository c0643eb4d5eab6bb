"""Notes whose `put` waits for a test, so that somebody can give up on it in the middle."""

from __future__ import annotations

from pathlib import Path

import anyio
from dialogue_kit import write_notes

from muarl.domain import Domain, load_domain

WRITES = 'world["notes"][key] = value\n'
WAITS = f"{WRITES}        Held.begun.set()\n        await Held.go_on.wait()\n"


class Held:
    """Where a tool waits for a test."""

    begun: anyio.Event
    go_on: anyio.Event


def slow_notes_in(folder: Path) -> Domain:
    """`put` waits once it has written something."""
    write_notes(folder)
    tools = (folder / "tools.py").read_text()
    assert WRITES in tools
    (folder / "tools.py").write_text(f"from slow_notes import Held\n{tools.replace(WRITES, WAITS)}")
    return load_domain(folder)
