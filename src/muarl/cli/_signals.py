"""Ctrl-C and SIGTERM, in plain handlers: Python runs those although the event loop stands still."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""Exit code of what was interrupted."""

_STILL_S = 2.0
"""The event loop stands still if it has not looked for so long."""

_lost = threading.Event()
"""An interrupt fell into code that lets nothing out, such as a `__del__` while libraries load."""

_Handler = Callable[[int, FrameType | None], Any]


class Requests:
    """How often a run was asked to end while it listened.

    The first request is only noted, so that the run may drain; where its event loop stands still, as in a
    task generator without end, it is said that this may take. The second interrupts whatever goes
    on, be it a tool that never awaits. The third ends the process at once, as nothing else ends code
    that catches everything; what is saved is as good as after a kill.
    """

    def __init__(self) -> None:
        self.count = 0
        self._looked_at = -math.inf

    def look(self) -> int:
        """The event loop goes on, and wants to know how often it was asked."""
        self._looked_at = time.monotonic()
        return self.count

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen for the length of the block; call from the main thread.

        Raises:
            KeyboardInterrupt: Anywhere within, at the second request; at once, where one was lost
                before, which nobody has heard.
        """
        if _lost.is_set():
            raise KeyboardInterrupt
        with _handling(self._hear, signal.SIGINT, signal.SIGTERM):
            yield

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        if self.count == 1 and time.monotonic() - self._looked_at > _STILL_S:
            # Not by `print`, which may be what was interrupted.
            os.write(2, b"muarl: ends once what runs now returns; Ctrl-C again ends it at once\n")
        if self.count == 2:
            raise KeyboardInterrupt
        if self.count > 2:
            os._exit(INTERRUPTED)


@contextmanager
def terminable() -> Iterator[None]:
    """Within the block SIGTERM is Ctrl-C, whatever that does: what was opened is closed.

    A KeyboardInterrupt that Python could only print is kept for `Requests.heard`.
    """
    if threading.current_thread() is not threading.main_thread():  # a host program's own affair
        yield
        return
    with _handling(_interrupt, signal.SIGTERM), _keeping_lost():
        yield


@contextmanager
def _keeping_lost() -> Iterator[None]:
    _lost.clear()
    before = sys.unraisablehook

    def unraisable(what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            _lost.set()
        else:
            before(what)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = before
        _lost.clear()


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    if callable(on_ctrl_c):
        on_ctrl_c(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt


@contextmanager
def _handling(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, handled in before.items():
            if signal.getsignal(number) == handler:  # else somebody within has other plans for it
                signal.signal(number, handled)
