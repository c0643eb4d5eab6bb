"""A thread that works beside a block: it begins with the block, and has ended when the block has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def helper_thread(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Let a thread work for the length of the block, and wait for it at the end.

    For what the event loop cannot be trusted with: it may be what is looked at, or be busy.

    Example:
        >>> def look(ended: threading.Event) -> None:
        ...     while not ended.wait(0.25):
        ...         draw()

    Args:
        work: What it does; it returns soon after the event that it is given is set. It must not raise.
        name: The thread's, as debuggers show it.
    """
    ended = threading.Event()
    thread = threading.Thread(target=work, args=[ended], name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
