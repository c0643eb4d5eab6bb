"""A person at the terminal, or whatever else writes lines to stdin."""

from __future__ import annotations

import sys

from muarl.cli._answer import answer
from muarl.cli._lines import Lines
from muarl.cli._telling import prompt


class Terminal:
    """Shows what is said on stdout, and reads lines from stdin (a `muarl.person.Person`)."""

    def __init__(self) -> None:
        stdin = sys.stdin  # None where it was closed
        self._asks = stdin is not None and stdin.isatty()
        self._lines = Lines(None if stdin is None else stdin.fileno())

    async def hear(self, who: str, text: str) -> None:
        # Further lines stand in, so that nobody speaks as somebody else.
        self.show(f"{who}: {text}".replace("\n", "\n  ") if who else text)

    async def speak(self, who: str) -> str | None:
        if self._asks:
            prompt(f"{who}> ")
        line = await self._lines.next()
        if line is None:
            return None
        if not self._asks:  # a terminal shows what is typed by itself
            self.show(f"{who}: {line}")
        return line

    def show(self, text: str) -> None:
        """Print it, so that the terminal obeys nothing in it."""
        answer(text)
