"""Tables of `docs/results/`: what `--markdown` prints is what stands on the page, letter by letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def markdown(what: str, columns: Mapping[str, Mapping[str, Any]], rows: Mapping[str, str]) -> str:
    """A table of figures.

    Args:
        what: Heads the first column.
        columns: Name of each column to its figures.
        rows: Key of a figure to what it is called; a column without one shows nothing.
    """
    lines = [_line([what, *columns]), _line(["---"] * (1 + len(columns)))]
    for key, called in rows.items():
        lines.append(_line([called, *(_cell(column.get(key)) for column in columns.values())]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else f"{value}"
