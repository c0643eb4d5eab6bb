"""A run's progress on stderr: a live view in a terminal, plain lines in a log.

The live view costs the same whatever the number of dialogues, since it shows counters; and it draws
itself less often the longer drawing takes, so that it never takes more than `_MAX_SHARE` of a core.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from muarl.cli._printable import printable
from muarl.cli._standing import Course, Phase, Standing
from muarl.cli._status import status
from muarl.cli._telling import redraws, tell
from muarl.helper_thread import helper_thread

_SECONDS_PER_LINE = 10.0
_MIN_PAUSE_S = 0.5
_MAX_SHARE = 0.01
_PHASES = 12
"""Of the last ones; a terminal has so many lines to spare."""
_NARROW = 72
"""Columns, with fewer of which a phase's name and bar would leave no room for its numbers."""


def drawn(standing: Standing) -> RenderableType:
    """A line and a bar for each phase, and below them what the dialogues of the present one do."""
    below = status(standing.dialogues)
    return Group(_Phases(standing.phases, len(standing.dialogues)), below)


class _Phases:
    """Phases, as many of the last ones as there is room for, and without bars where it is narrow.

    Args:
        phases: All of them.
        below: Lines that come after them.
    """

    def __init__(self, phases: Sequence[Phase], below: int) -> None:
        self._phases = phases
        self._below = below

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = console.height - self._below - 1 if console.is_terminal else _PHASES
        shown = self._phases[-max(min(room, _PHASES), 1) :]
        if options.max_width < _NARROW:
            for phase in shown:
                words = [phase.name, f"{phase.done:,}/{phase.total:,}", _took(phase), phase.figures]
                yield Text(" ".join(filter(None, words)), no_wrap=True, overflow="ellipsis")
            return
        table = Table.grid(padding=(0, 1))
        for _ in range(4):
            table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for phase in shown:
            table.add_row(
                Text(f"{phase.name:<24}"),
                ProgressBar(total=max(phase.total, 1), completed=phase.done, width=16),
                Text(f"{phase.done:,}/{phase.total:,}"),
                Text(_took(phase), style="dim"),
                Text(phase.figures),
            )
        yield table


def _took(phase: Phase) -> str:
    return str(timedelta(seconds=int(phase.seconds)))


class LiveView:
    """Something that is drawn again and again while it is open, from a thread of its own.

    Args:
        render: What it looks like now.
        console: Where.
    """

    def __init__(self, render: Callable[[], RenderableType], console: Console) -> None:
        self._live = Live(get_renderable=render, console=console, auto_refresh=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """On the screen while this is open."""
        with self._live:
            try:
                with helper_thread(self.draw_until, "muarl-display"):
                    yield
            finally:
                self.refresh()

    def draw_until(self, ended: threading.Event) -> None:
        """Draw again and again: the event loop may be busy."""
        pause = _MIN_PAUSE_S
        while not ended.wait(pause):
            begun = time.thread_time()
            self.refresh()
            pause = max(_MIN_PAUSE_S, (time.thread_time() - begun) / _MAX_SHARE)

    def refresh(self) -> None:
        """Draw it once."""
        self._live.refresh()


class LiveProgress:
    """The course of a run in a terminal; notes stay above what is drawn anew."""

    def __init__(self, course: Course, console: Console) -> None:
        self._course = course
        self._console = console
        self.view = LiveView(lambda: drawn(course.standing()), console)

    def phase(self, name: str, total: int) -> None:
        self._course.phase(name, total)

    def advance(self, done: int, **figures: Any) -> None:
        self._course.advance(done, **figures)

    def note(self, text: str) -> None:
        self._course.note(text)
        self._console.print(printable(text), markup=False, highlight=False)


class PlainProgress:
    """A line when a phase begins and every few seconds after: for logs and pipes."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._said = 0.0
        self._phase = Phase("", 0)

    def phase(self, name: str, total: int) -> None:
        self._course.phase(name, total)
        self._phase = Phase(name, total)
        self._say(f"{name}: {total}")

    def advance(self, done: int, **figures: Any) -> None:
        self._course.advance(done, **figures)
        name, total = self._phase.name, self._phase.total
        if done >= total or time.monotonic() - self._said >= _SECONDS_PER_LINE:
            self._say("  ".join(filter(None, [f"{name}: {done}/{total}", self._course.brief()])))

    def note(self, text: str) -> None:
        self._course.note(text)
        self._say(text)

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        tell(text)


@contextmanager
def display(course: Course) -> Iterator[LiveProgress | PlainProgress]:
    """The display that suits where stderr goes."""
    console = Console(stderr=True)
    if not redraws(console.file):
        yield PlainProgress(course)
        return
    live = LiveProgress(course, console)
    with live.view.shown():
        yield live
