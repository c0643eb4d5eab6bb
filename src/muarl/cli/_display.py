"""A run's progress on stderr: a live bar in a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

_SECONDS_PER_LINE = 10.0


class LiveProgress:
    """One bar per phase; finished phases stay on the screen with their last figures."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._total = 0

    def phase(self, name: str, total: int) -> None:
        self._finish()
        self._total = total
        self._task = self._bars.add_task(name, total=total, figures="")

    def advance(self, done: int, **figures: Any) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=done, figures=_words(figures))

    def note(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)

    def _finish(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=self._total)


class PlainProgress:
    """A line when a phase begins and every few seconds after: for logs and pipes."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._said = 0.0
        self._name = ""
        self._total = 0

    def phase(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._say(f"{name}: {total}")

    def advance(self, done: int, **figures: Any) -> None:
        if done >= self._total or time.monotonic() - self._said >= _SECONDS_PER_LINE:
            self._say(f"{self._name}: {done}/{self._total} {_words(figures)}".rstrip())

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        sys.stderr.write(f"[{self._said - self._started:6.1f} s] {text}\n")
        sys.stderr.flush()


@contextmanager
def display() -> Iterator[LiveProgress | PlainProgress]:
    """The display that suits where stderr goes."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainProgress()
        return
    with Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Elapsed(),
        TextColumn("{task.fields[figures]}"),
        console=console,
    ) as bars:
        yield LiveProgress(bars)


def _words(figures: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )
