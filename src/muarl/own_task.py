"""An agent's own loop in a task of its own, so that whatever it does to its task is done to nobody else.

A loop may cancel its own task, as code of asyncio's easily does, or take no cancellation: `except BaseException`
in a loop of retries is enough. The first is its own error; the second is left behind, after a moment to clean
up: its coroutine is not gone on with at its next wait, whatever that is.

What a shield of its own holds, such as a thread that is waited for, asyncio lets us break off; trio lets
nobody, and its end is waited for. That is said in a warning, as is each loop that is left behind.
"""

from __future__ import annotations

import asyncio
import ctypes
import warnings
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, cast

import anyio
import anyio.lowlevel
import sniffio

from muarl.authors import blame, is_cancelled_around, is_of_a_library, is_ours, place_of
from muarl.errors import AgentError

GRACE_S = 1.0
"""Seconds that a loop has to end once it is cancelled."""
_LAST_WAITS = 16
"""Times that one that is left behind is still gone on with, so that what is open in it can be closed."""
_LEFT_OPEN = (
    "the agent ended while a time limit or a task group that it had entered was still open, as an async "
    "generator does that is left with `break`; close it (contextlib.aclosing)"
)


class OwnTask:
    """Runs a loop in a task of its own. Use once.

    Attributes:
        scope: Of the loop; cancel it, or give it a deadline, to end the loop.
        left_at: Where it was left behind, ` (mine.py:12, in agent)`; None unless it was.
    """

    scope: anyio.CancelScope

    def __init__(
        self, lead: Callable[[], Coroutine[Any, Any, object]], last: BaseException
    ) -> None:
        """Prepare.

        Args:
            lead: The loop. What it raises, `run` raises.
            last: Raised in it wherever it waits, once it is to be left behind.
        """
        self._lead = lead
        self._last = last
        self._ended = anyio.Event()
        self._error: BaseException | None = None
        self._has_returned = False
        self._task: asyncio.Task[Any] | None = None
        self._steps: _Steps | None = None
        self.left_at: str | None = None

    async def run(self) -> None:
        """Until it has ended, or was left behind.

        Raises:
            AgentError: It cancelled its own task, or left a scope open.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self.scope = tasks.cancel_scope
                tasks.start_soon(self._carry_out)
                try:
                    await self._ended.wait()
                except BaseException:  # cancelled: with it, or by what is around
                    await self._end()
                    raise
        except BaseExceptionGroup:  # scopes that it left open complain, once it has ended
            if self._has_returned:
                self._error = self._error or AgentError(_LEFT_OPEN)
            elif self.left_at is None:
                raise
            # What is around may have been cancelled all the same.
            await anyio.lowlevel.checkpoint_if_cancelled()
        if self._error is not None:
            raise self._error

    async def _carry_out(self) -> None:
        if sniffio.current_async_library() == "asyncio":
            self._task = asyncio.current_task()
        self._steps = _Steps(self._lead(), self._last)
        try:
            await self._steps
        except BaseException as error:
            if is_cancelled_around():
                raise
            self._error = error
            if isinstance(error, asyncio.CancelledError):
                self._error = AgentError(f"the agent cancelled its own task: {blame(error)}")
                self._error.__cause__ = error
        finally:
            self._ended.set()
        self._has_returned = True

    async def _end(self) -> None:
        """Give it a moment, and then leave it behind."""
        with anyio.move_on_after(GRACE_S, shield=True):
            await self._ended.wait()
            return
        assert self._steps is not None  # it has begun, or it had ended
        self.left_at = self._steps.at
        self._steps.are_last = True
        said = f"an agent's loop does not end when it is cancelled{self.left_at}: "
        if self._task is None:
            said += "it is left behind at its next wait, and trio lets nobody end it before, if it is shielded"
        else:
            said += "it is left behind, and what it did last is not gone on with"
        warnings.warn(said, RuntimeWarning, stacklevel=1)
        if self._task is not None:
            with anyio.CancelScope(shield=True):
                while not self._ended.is_set():
                    self._task.cancel()  # breaks a shield as well
                    await anyio.sleep(0.001)


class _Steps:
    """Goes on with a coroutine from wait to wait, for as long as that is wanted.

    Attributes:
        are_last: Set: it is to end now, and is left where it is if it does not.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, object], last: BaseException) -> None:
        self._coroutine = coroutine
        self._last = last
        self.are_last = False

    @property
    def at(self) -> str:
        """The line of an author's at which it waits, ` (mine.py:12, in agent)`."""
        found, waiting = None, cast(Any, self._coroutine)
        while (frame := getattr(waiting, "cr_frame", None)) is not None:
            file = frame.f_code.co_filename
            if not is_ours(file) and not is_of_a_library(file):
                found = frame
            waiting = waiting.cr_await
        return place_of(found)

    def __await__(self) -> Generator[Any, Any, None]:
        step: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        num_last = 0
        while True:
            try:
                wanted = step(given)
            except StopIteration:
                return
            try:
                given, step = None, self._coroutine.send
                if _has_an_own_will(wanted):
                    yield from self._done(wanted)
                else:
                    given = yield wanted
            except BaseException as error:  # noqa: BLE001
                given, step = error, self._coroutine.throw
            if self.are_last:
                if num_last == _LAST_WAITS:
                    _keep_for_ever(self._coroutine)
                    return
                num_last += 1
                given, step = self._last, self._coroutine.throw

    def _done(self, wanted: asyncio.Future[Any]) -> Generator[Any, Any, None]:
        """Wait for a task that the loop made; cancelled, until it has ended, but not beyond the last."""
        wanted._asyncio_future_blocking = False
        while True:
            done = wanted.get_loop().create_future()
            wake = partial(_wake, done)
            wanted.add_done_callback(wake)
            try:
                yield from done
            except asyncio.CancelledError:
                if self.are_last or not wanted.cancel():
                    raise
            else:
                return
            finally:
                wanted.remove_done_callback(wake)


def _has_an_own_will(wanted: object) -> bool:
    """Whether what is waited for may go on when it is cancelled: one or several tasks of asyncio."""
    return isinstance(wanted, asyncio.Future) and type(wanted) is not asyncio.Future


def _wake(done: asyncio.Future[None], _: object) -> None:
    if not done.done():
        done.set_result(None)


def _keep_for_ever(coroutine: Coroutine[Any, Any, object]) -> None:
    """Keep it from being let go, at the very end of the program even: Python would go on with it once more.

    One that catches everything would then catch for ever that there is no event loop any more.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))
