"""Rows as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from muarl.data.export.rows import Row
from muarl.record.saving import saving


def write_jsonl(rows: Iterable[Row], path: Path) -> int:
    """Write one JSON object a line; gives the number of lines.

    Raises:
        RecordError: The disk said no.
    """
    encoder = msgspec.json.Encoder()
    count = 0
    with saving(path), path.open("wb") as file:
        for row in rows:
            file.write(encoder.encode(row) + b"\n")
            count += 1
    return count
