"""What an agent asked for is done to its end, although the agent no longer waits for it.

Agents have time limits of their own (`anyio.move_on_after`, `asyncio.wait_for`). A tool that was called has
changed the world perhaps, and a user who was told something has heard it: what came of it belongs into the
record, and the next call comes after it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from muarl.authors import is_cancelled_around
from muarl.errors import EpisodeError
from muarl.own_loop import DialogueOver
from muarl.record import Outcome

Given = TypeVar("Given")


class Errands:
    """Those of one dialogue. Use once."""

    _tasks: TaskGroup

    @asynccontextmanager
    async def under_way(self) -> AsyncIterator[None]:
        """While the block is open, there may be some; leaving it waits for them, unless it is cancelled."""
        raised: Exception | None = None
        async with anyio.create_task_group() as self._tasks:
            try:
                yield
            except Exception as error:  # noqa: BLE001 -- raised below, and not as a part of a group
                raised = error
        if raised is not None:
            raise raised

    async def to_its_end(self, work: Callable[[], Awaitable[Given]]) -> Given:
        """Do something that whoever asked for it does not stop by waiting no longer.

        Raises:
            DialogueOver: The dialogue was cut off meanwhile.
        """
        errand = _Errand(work)
        self._tasks.start_soon(errand.run)
        return await errand.result()


class _Errand(Generic[Given]):
    def __init__(self, work: Callable[[], Awaitable[Given]]) -> None:
        self._work = work
        self._given: list[Given] = []
        self._error: BaseException = DialogueOver(Outcome.LEFT)
        self._ended = anyio.Event()
        self._is_waited_for = True

    async def run(self) -> None:
        try:
            self._given.append(await self._work())
        except BaseException as error:
            if is_cancelled_around():
                raise
            self._error = error
            is_a_bug = isinstance(error, Exception) and not isinstance(error, EpisodeError)
            if is_a_bug and not self._is_waited_for:
                raise
        finally:
            self._ended.set()

    async def result(self) -> Given:
        try:
            await self._ended.wait()
        finally:
            self._is_waited_for = False
        if not self._given:
            raise self._error
        return self._given[0]
