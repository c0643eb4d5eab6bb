"""What a verb waits for, said after some seconds: a domain's own code may have no end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from muarl.authors import frames_of_hers, place_of
from muarl.cli._telling import erase_step, remark
from muarl.helper_thread import helper_thread

_AFTER_S = 5.0
_PERIOD_S = 0.25


@contextmanager
def waiting_told() -> Iterator[None]:
    """Within the block, say once of each piece of a domain's code that this thread is long in it.

    Such as a generator of tasks with an endless loop, or one that waits for a network.
    """
    watched = threading.get_ident()

    def look(ended: threading.Event) -> None:
        told = since = None
        looks = 0
        while not ended.wait(_PERIOD_S):
            frames = list(frames_of_hers(sys._current_frames().get(watched)))
            outermost = frames[-1] if frames else None
            looks = looks + 1 if outermost is not None and outermost is since else 0
            since = outermost
            if outermost is None or outermost is told or looks * _PERIOD_S < _AFTER_S:
                continue
            told = outermost
            erase_step()
            remark(
                f"still waiting for {outermost.f_code.co_name}{place_of(frames[0])}; Ctrl-C twice ends it"
            )

    with helper_thread(look, "muarl-waiting"):
        yield
