"""A run's progress on stderr: a live view in a terminal, plain lines in a log.

The live view costs the same whatever the number of dialogues, since it shows counters; and it draws
itself less often the longer drawing takes, so that it never takes more than `_MAX_SHARE` of a core.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

from muarl.cli._printable import in_one_line, printable
from muarl.cli._status import brief, status
from muarl.cli._telling import remark
from muarl.observe import Counters

_SECONDS_PER_LINE = 10.0
_MIN_PAUSE_S = 0.5
_MAX_SHARE = 0.01
_RATES_OVER_S = 10.0


class LiveProgress:
    """One bar per phase, and below them what the dialogues of the present one do.

    Finished phases stay on the screen with their last figures.
    """

    def __init__(self, counters: Counters, console: Console) -> None:
        self._view = _View(counters, console)
        self._task: TaskID | None = None
        self._total = 0

    def phase(self, name: str, total: int) -> None:
        self.finish()
        self._total = total
        self._view.begin()
        self._task = self._view.add_task(in_one_line(name), total=total, figures="")

    def advance(self, done: int, **figures: Any) -> None:
        if self._task is not None:
            self._view.update(self._task, completed=done, figures=_words(figures))

    def note(self, text: str) -> None:
        self._view.console.print(printable(text), markup=False, highlight=False)

    def finish(self) -> None:
        """The present phase is done."""
        if self._task is not None:
            self._view.update(self._task, completed=self._total)

    @contextmanager
    def shown(self) -> Iterator[LiveProgress]:
        """On the screen while this is open."""
        ended = threading.Event()
        drawing = threading.Thread(target=self._view.draw_until, args=[ended], daemon=True)
        with self._view:
            drawing.start()
            try:
                yield self
            finally:
                ended.set()
                drawing.join()


class _View(Progress):
    """Bars, and a status below."""

    def __init__(self, counters: Counters, console: Console) -> None:
        self._counters = counters
        self._before = counters.snapshot()
        self._recent = deque([self._before])
        super().__init__(
            TextColumn("{task.description:<24}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            Elapsed(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=console,
            auto_refresh=False,
        )

    def begin(self) -> None:
        """What is shown of dialogues counts from now on."""
        self._before = self._counters.snapshot()
        self._recent = deque([self._before])

    def draw_until(self, ended: threading.Event) -> None:
        """Draw again and again, in a thread of its own: the event loop may be busy."""
        pause = _MIN_PAUSE_S
        while not ended.wait(pause):
            begun = time.thread_time()
            self.refresh()
            pause = max(_MIN_PAUSE_S, (time.thread_time() - begun) / _MAX_SHARE)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        now = self._counters.snapshot()
        while now.seconds - self._recent[0].seconds > _RATES_OVER_S and len(self._recent) > 1:
            self._recent.popleft()
        yield status(now.since(self._before), now.since(self._recent[0]))
        self._recent.append(now)


class PlainProgress:
    """A line when a phase begins and every few seconds after: for logs and pipes."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._before = counters.snapshot()
        self._started = time.monotonic()
        self._said = 0.0
        self._name = ""
        self._total = 0

    def phase(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._before = self._counters.snapshot()
        self._say(f"{name}: {total}")

    def advance(self, done: int, **figures: Any) -> None:
        if done >= self._total or time.monotonic() - self._said >= _SECONDS_PER_LINE:
            words = [_words(figures), brief(self._counters.snapshot().since(self._before))]
            self._say("  ".join([f"{self._name}: {done}/{self._total}", *filter(None, words)]))

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        remark(f"[{self._said - self._started:6.1f} s] {text}")


@contextmanager
def display(counters: Counters) -> Iterator[LiveProgress | PlainProgress]:
    """The display that suits where stderr goes."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainProgress(counters)
        return
    with LiveProgress(counters, console).shown() as live:
        yield live


def _words(figures: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )
