"""Somebody's code in a thread beside the dialogues, which nobody has to wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.lowlevel import EventLoopToken, current_token

from muarl.authors import RAISED, as_exceptions

Given = TypeVar("Given")


async def beside(function: Callable[[], Given]) -> Given:
    """Run what may take long. A deadline leaves it to itself, and so does the program's end.

    Python waits for its threads as it ends, those of anyio included: a program whose environment hangs
    would never end. So the thread is one of those that are not waited for.
    """
    async with to_thread.current_default_thread_limiter():
        running = _Running(function, current_token())
        threading.Thread(target=running.run, name="muarl environment", daemon=True).start()
        await running.ended.wait()
    return running.result()


class _Running(Generic[Given]):
    def __init__(self, function: Callable[[], Given], token: EventLoopToken) -> None:
        self._function = function
        self._token = token
        self._given: list[Given] = []
        self._error: BaseException | None = None
        self.ended = anyio.Event()

    def run(self) -> None:
        try:
            with as_exceptions():
                self._given.append(self._function())
        except RAISED as error:  # raised where it is waited for
            self._error = error
        with suppress(RuntimeError):  # the event loop has ended meanwhile
            from_thread.run_sync(self.ended.set, token=self._token)

    def result(self) -> Given:
        if self._error is not None:
            raise self._error
        return self._given[0]
