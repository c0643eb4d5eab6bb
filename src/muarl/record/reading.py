"""Read the episodes of one journal or several, each once, with flat memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from muarl.record.episode import Episode, EpisodeHead
from muarl.record.journal import read_heads, read_journal


class StoredEpisodes:
    """The episodes of journals, such as the shards of a rollout; can be gone through repeatedly.

    Each episode comes once. A journal may hold two records of a key, since a resumed run tries the
    faults of the earlier one again: of these the last counts.

    One episode is in memory at a time; of all others some hundred bytes each. What was appended
    after the journals were first gone through is left out.

    Args:
        journals: Files, in the order to read them.
        phases: Phases to read; empty: all.
    """

    def __init__(self, journals: Sequence[Path], phases: Collection[str] = ()) -> None:
        self._journals = tuple(journals)
        self._phases = frozenset(phases)

    def __iter__(self) -> Iterator[Episode]:
        """Each episode that counts.

        Raises:
            RecordError: A journal cannot be read.
        """
        for number, journal in enumerate(self._journals):
            for place, episode in enumerate(read_journal(journal)):
                if self._last.get(hash(episode.key)) == (number, place):
                    yield episode

    def heads(self) -> Iterator[EpisodeHead]:
        """What identifies each episode that counts, in the same order.

        Raises:
            RecordError: A journal cannot be read.
        """
        for number, journal in enumerate(self._journals):
            for place, head in enumerate(read_heads(journal)):
                if self._last.get(hash(head.key)) == (number, place):
                    yield head

    @cached_property
    def _last(self) -> dict[int, tuple[int, int]]:
        """Hash of each key to the journal and the place of its last record.

        Hashes of 64 bits stand for the keys, which would take four times the room.
        """
        return {
            hash(head.key): (number, place)
            for number, journal in enumerate(self._journals)
            for place, head in enumerate(read_heads(journal))
            if not self._phases or head.key.phase in self._phases
        }
