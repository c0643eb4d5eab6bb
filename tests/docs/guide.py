"""The domain that docs/authoring.md builds: its files, as the page gives them."""

from __future__ import annotations

import re
from pathlib import Path

from documents import ROOT, blocks

PAGE = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"# (cinema/[\w.]+)(?:, continued)?\n")


def files() -> dict[str, str]:
    """Path to text: blocks that begin with a file's name, put together in the page's order."""
    found: dict[str, str] = {}
    for block in blocks():
        named = _NAMED.match(block.text)
        if block.place.startswith("authoring.md") and named:
            found[named[1]] = found.get(named[1], "") + block.text[named.end() :]
    return found


def write(folder: Path) -> None:
    """Write the domain into a folder, over what `muarl init cinema` has written there."""
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


def findings() -> list[str]:
    """The findings of its table, in order; `...` stands for what differs."""
    return re.findall(r"^\| ``(.*?) ?`` \|", PAGE, re.MULTILINE)
