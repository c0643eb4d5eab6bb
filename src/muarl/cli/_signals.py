"""Ctrl-C and SIGTERM, in plain handlers: Python runs those although the event loop stands still."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""Exit code of what was interrupted."""

_Handler = Callable[[int, FrameType | None], Any]


class Requests:
    """How often a run was asked to end while it listened.

    The first request is only noted, so that the run may drain. The second interrupts whatever goes
    on, be it a tool that never awaits. The third ends the process at once, as nothing else ends code
    that catches everything; what is saved is as good as after a kill.
    """

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen for the length of the block; call from the main thread.

        Raises:
            KeyboardInterrupt: Anywhere within, at the second request.
        """
        with _handling(self._hear, signal.SIGINT, signal.SIGTERM):
            yield

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        if self.count == 2:
            raise KeyboardInterrupt
        if self.count > 2:
            os._exit(INTERRUPTED)


@contextmanager
def terminable() -> Iterator[None]:
    """Within the block SIGTERM is Ctrl-C, whatever that does: what was opened is closed."""
    if threading.current_thread() is not threading.main_thread():  # a host program's own affair
        yield
        return
    with _handling(_interrupt, signal.SIGTERM):
        yield


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
            signal.signal(number, handled)
