"""Text of models, servers and files, so that a terminal obeys nothing in it."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with what is not printable spelled out, line ends excepted."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
