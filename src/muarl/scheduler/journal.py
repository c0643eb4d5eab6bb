"""Where final episodes go."""

from __future__ import annotations

from typing import Protocol

from muarl.record import Episode


class Journal(Protocol):
    """Where final episodes go; `muarl.record.JournalWriter` is one."""

    def append(self, episode: Episode) -> None:
        """Return when the episode is safe."""
        ...


class Unjournaled:
    """A journal that keeps nothing: such dialogues can be played again from the seed."""

    def append(self, episode: Episode) -> None:
        del episode
