"""What is left out of a journal that ends in the middle of an episode."""

from __future__ import annotations

from pathlib import Path

from muarl.cli._telling import remark
from muarl.record import torn_bytes
from muarl.record.odd_files import refuse_odd_files


def tell_torn(run: Path) -> None:
    """Say so, if the journal of a run's folder ends so; there may be none."""
    refuse_odd_files(run)
    journal = run / "episodes.journal"
    if journal.is_file() and (torn := torn_bytes(journal)):
        remark(
            f"muarl: {journal}: its last record is torn, and left out ({torn} bytes): whoever wrote it was "
            "killed, or is writing it now"
        )
