"""The folder of a run with several ranks: the first one writes it, the others read it.

    episodes.rank1.journal    what rank 1 played; gone when the run ends, since episodes.journal has it all
    log.rank1.jsonl           what happened to its dialogues; when the run is taken up, put into log.jsonl

What the first rank writes while the run goes on the others know by themselves, since they take the same
decisions: they keep it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from muarl.record import JournalWriter, read_journal
from muarl.record.codec import encode_episode
from muarl.record.learned import LearnedLine
from muarl.record.saving import saving
from muarl.train.batch_log import BatchLog
from muarl.train.plan import BatchRecord
from muarl.train.run_folder import RunFolder

_OWN = "episodes.rank*.journal"
_OWN_LOGS = "log.rank*.jsonl"


class FollowerFolder(RunFolder):
    """The folder as a rank has it that is not the first; read when it was made or taken up.

    Args:
        path: The folder.
        rank: Which.
    """

    def __init__(self, path: Path, rank: int) -> None:
        super().__init__(path)
        self.own_journal = path / f"episodes.rank{rank}.journal"
        self.events = path / f"log.rank{rank}.jsonl"
        self.batches = _Remembered(self.batches.path)
        self._lines = list(super().lines())

    def log(self, kind: str, **fields: Any) -> None:
        """Remember a line that the first rank appends to the metrics."""
        self._lines.append({"kind": kind, **fields})

    def log_learned(self, line: LearnedLine) -> None:
        """The first rank writes it."""
        del line

    def lines(self) -> Iterator[dict[str, Any]]:
        """The metrics so far."""
        yield from list(self._lines)

    def keep_lines(self, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Drop those that the first rank drops."""
        self._lines = [line for line in self._lines if keep(line)]


class _Remembered(BatchLog):
    """Batches that the first rank writes down."""

    def append(self, record: BatchRecord) -> None:
        del record


def collect(folder: RunFolder) -> None:
    """Put into a run's journal what ranks of an earlier process played and nobody used yet.

    Whoever takes a run up calls, before the journal is read, whatever the number of ranks then and now.

    Raises:
        RecordError: A journal is damaged, or the disk refused.
    """
    others = sorted(folder.path.glob(_OWN))
    if not others:
        return
    known = {encode_episode(episode) for episode in _episodes(folder.journal)}
    with JournalWriter(folder.journal) as journal:
        for path in others:
            with JournalWriter(path):  # nobody else has it, and its torn tail is cut off
                pass
            for episode in read_journal(path):
                if encode_episode(episode) not in known:
                    journal.append(episode)
    remove_own(others)


def collect_logs(folder: RunFolder) -> None:
    """Put the logs of an earlier process's ranks into the run's, before any rank writes one.

    Raises:
        RecordError: The disk refused.
    """
    others = sorted(folder.path.glob(_OWN_LOGS))
    for path in others:
        with saving(folder.events), folder.events.open("ab") as log:
            log.write(path.read_bytes())
    remove_own(others)


def remove_own(paths: list[Path]) -> None:
    """Remove ranks' journals or logs, which the run's has all of."""
    for path in paths:
        with saving(path):
            path.unlink(missing_ok=True)


def _episodes(path: Path) -> Iterator[Any]:
    return read_journal(path) if path.exists() else iter(())
