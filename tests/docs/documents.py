"""What the README and docs/**/*.md show: code blocks, and code within sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_COMMAND = re.compile(
    r"(\$ )?(make|git|pip|python3?|muarl|scripts/\S+|benchmarks/\S+|\.venv/\S+)\b"
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        place: Document and line.
        language: What stands behind the fence.
        text: Its lines.
    """

    place: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Lines to be typed into a shell. A block of `text` holds none, whatever it looks like."""
        if self.language not in ("", "sh", "console"):
            return []
        lines = self.text.splitlines()
        return [line.removeprefix("$ ") for line in lines if is_command(line)]


def is_command(line: str) -> bool:
    """Whether a line could be typed into a shell."""
    return _COMMAND.match(line) is not None


def blocks() -> list[Block]:
    """All fenced blocks, in reading order."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(f"{path.name}:{line}", match[2], dedent(match[3])))
    return found


def outputs() -> list[str]:
    """What documents show to come out: blocks of `text`."""
    return [block.text for block in blocks() if block.language == "text"]


def anchors(text: str) -> set[str]:
    """What a link may name behind `#`: headings, as GitHub spells them, and places marked so."""
    headings = [
        re.sub(r"[^\w\- ]", "", heading) for heading in _HEADING.findall(_BLOCK.sub("", text))
    ]
    named = re.findall(r'<a id="([^"]+)"></a>', text)
    return {heading.lower().replace(" ", "-") for heading in headings}.union(named)


def inline_code() -> list[tuple[str, str]]:
    """(document, code) for each piece of code within a sentence."""
    found = []
    for path in DOCUMENTS:
        prose = _BLOCK.sub("", path.read_text(encoding="utf-8"))
        found += [(path.name, code) for code in _INLINE.findall(prose)]
    return found
