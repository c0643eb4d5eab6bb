"""`compose` for callers that do not await; it ends even where an author's code does not."""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future, wait
from functools import partial
from threading import Event, Thread
from types import FrameType
from typing import Any

import anyio

from muarl.authors import frames_of_hers, place_of
from muarl.goals.compose import Composition, compose
from muarl.goals.errors import GoalError
from muarl.goals.goal import Goals
from muarl.goals.prove import Stage

_LOOK_S = 0.2
_ENDLESS_S = 60.0
"""What one call of an author's code may take: a goal draws one wish, a tool answers one call."""
_LAST_S = 5.0
"""How long is waited for what is under way, once nobody wants it any more."""


def composed_apart(goals: Goals, stage: Stage, **arguments: Any) -> Composition:
    """`compose` in an event loop and a thread of its own.

    Args:
        goals: What users may want.
        stage: A domain that nothing else uses meanwhile.
        arguments: As of `compose`.

    Raises:
        GoalError: As of `compose`, or a call of a goal or a tool does not end.
        ToolServerError: As of `compose`.
    """
    stop = Event()
    asked = partial(compose, goals, stage, wanted=lambda: not stop.is_set(), **arguments)
    composing: Future[Composition] = Future()

    def work() -> None:
        try:
            composing.set_result(anyio.run(asked))
        except BaseException as error:  # noqa: BLE001 of whoever waits for it
            composing.set_exception(error)

    # A daemon, for Python would wait at its end for code that has none.
    thread = Thread(target=work, name="composing tasks", daemon=True)
    thread.start()
    try:
        _watch(composing, thread)
        return composing.result()
    finally:
        stop.set()  # nobody waits any more, as after Ctrl-C
        thread.join(_LAST_S)


def _watch(composing: Future[Composition], thread: Thread) -> None:
    """Return when it is done.

    Raises:
        GoalError: One call of an author's code has gone on for too long.
    """
    call: FrameType | None = None
    since = time.monotonic()
    while not wait([composing], _LOOK_S).done:
        under_way = list(frames_of_hers(sys._current_frames().get(thread.ident or 0)))
        outermost = under_way[-1] if under_way else None
        if outermost is not call:
            call, since = outermost, time.monotonic()
        elif outermost is not None and time.monotonic() - since > _ENDLESS_S:
            raise GoalError(
                f"a call of {outermost.f_code.co_name} has not ended within {_ENDLESS_S:g} s"
                f"{place_of(under_way[0])}; give its loops an end"
            )
