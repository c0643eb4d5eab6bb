"""Estimates and tables, as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.evaluate.statistics import Interval


def number(estimate: Interval, *, signed: bool = False) -> str:
    """An estimate and its interval, for a cell of a table."""
    sign = "+" if signed else ""
    if estimate.value is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:{sign}.3f}"
    return f"{estimate.value:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns side by side; those that are empty below the first row are left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:]) or len(rows) == 1]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
