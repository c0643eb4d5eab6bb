"""Text of models, servers and files, so that a terminal obeys nothing in it.

All that the command line shows passes through here: `answer`, `remark` and the display call it.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with what is not printable spelled out, line ends and tabs excepted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def in_one_line(text: str) -> str:
    """The same, line ends too: a name that holds one begins no line of ours."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
