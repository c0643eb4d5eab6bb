"""batches.jsonl: what each update is made from, on disk before it is made.

    {"iteration": 3, "groups": [[3, "cancel-17", 0], [2, "return-4", 0]], "missing": [], "idle": [],
     "dropped": []}

Where sampling and learning overlap, which groups are whole first is a matter of time. A run that is taken
up reads here what it has learned from, and learns from the same again since its checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muarl.errors import RecordError
from muarl.record.saving import saving
from muarl.train.plan import BatchRecord

_decoder = msgspec.json.Decoder(BatchRecord)


class BatchLog:
    """The file of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[BatchRecord]:
        """All batches, the last one of each iteration; a torn last line is cut off.

        Raises:
            RecordError: A line that is not the last is damaged, or the disk refused.
        """
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            with saving(self.path):
                os.truncate(self.path, len(whole))
        return list({record.iteration: record for record in self._decoded(whole)}.values())

    def _decoded(self, data: bytes) -> Iterator[BatchRecord]:
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                yield _decoder.decode(line)
            except msgspec.DecodeError as error:
                raise RecordError(
                    f"{self.path}:{number}: no record of a batch: {error}. "
                    "Restore the file from a copy, or use --overwrite to start anew"
                ) from error

    def append(self, record: BatchRecord) -> None:
        """Return when the disk has it.

        Raises:
            RecordError: The disk refused.
        """
        with saving(self.path), self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())
