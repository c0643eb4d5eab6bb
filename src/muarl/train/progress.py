"""What a run tells whoever watches it."""

from __future__ import annotations

from typing import Any, Protocol


class Progress(Protocol):
    """Receives a run's progress; must not raise or block."""

    def phase(self, name: str, total: int) -> None:
        """A phase of `total` units begins."""
        ...

    def advance(self, done: int, **figures: Any) -> None:
        """`done` units of the phase are done; figures worth showing beside it."""
        ...

    def note(self, text: str) -> None:
        """A line worth keeping on the screen."""
        ...


class Silent:
    """Shows nothing."""

    def phase(self, name: str, total: int) -> None:
        del name, total

    def advance(self, done: int, **figures: Any) -> None:
        del done, figures

    def note(self, text: str) -> None:
        del text
