"""A person who takes part in a dialogue: what she reads and writes, wherever she sits."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from muarl.errors import did_you_mean


class Person(Protocol):
    """Somebody who reads and writes lines."""

    async def hear(self, who: str, text: str) -> None:
        """Let her read what somebody says; `who` is "" for what nobody says, such as help."""
        ...

    async def speak(self, who: str) -> str | None:
        """The next line that she writes, in the part of `who`; None once she has left."""
        ...


def command(line: str, known: Collection[str]) -> tuple[str, str]:
    """What a line that she wrote commands, and the rest of it; ("", line) if it commands nothing.

    A command may be shortened as long as it is the only one; two slashes begin a text with one.

    Raises:
        ValueError: There is no such command.

    Example:
        >>> command("/q", {"/quit", "/help"})
        ('/quit', '')
        >>> command("//etc is full", {"/quit", "/help"})
        ('', '/etc is full')
    """
    if not line.startswith("/"):
        return "", line
    if line.startswith("//"):
        return "", line[1:]
    word, _, rest = line.partition(" ")
    meant = [name for name in known if name == word] or [n for n in known if n.startswith(word)]
    if len(meant) == 1:
        return meant[0], rest.strip()
    hint = did_you_mean(word, known) or f"; there are {', '.join(known)}"
    raise ValueError(f"there is no {word}{hint} (a text that begins with / takes two of them)")
