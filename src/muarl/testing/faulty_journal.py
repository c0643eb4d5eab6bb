"""A journal on a disk that is full now and then."""

from __future__ import annotations

from muarl.errors import RecordError
from muarl.record import Episode
from muarl.scheduler.journal import Journal


class FullDisk:
    """Passes episodes on to a sound journal until its room is used up.

    Args:
        journal: What really keeps them.
        room: Episodes that fit; may be set anew, as a person makes room.

    Attributes:
        room: What is left.
        refused: Episodes that were not taken.

    Example:
        >>> journal = FullDisk(writer, room=3)
    """

    def __init__(self, journal: Journal, room: int) -> None:
        self._journal = journal
        self.room = room
        self.refused = 0

    def append(self, episode: Episode) -> None:
        if self.room <= 0:
            self.refused += 1
            raise RecordError("cannot write the journal (No space left on device, injected)")
        self.room -= 1
        self._journal.append(episode)
