"""Cancel async work at each of its waits, one after another, and see what lives on (law L7).

A wait is where a task gives way to others: an `await` that really waited. Counting them over all
tasks of the work, and cancelling at the 1st, at the 2nd, and so on until the work ends before its
turn comes, cancels at every `await` there is, whichever task it is in.
"""

from __future__ import annotations

import asyncio
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

Work = Callable[..., Coroutine[Any, Any, object]]
"""Async work; called anew each time, with what is held around it if there is something."""

Around = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens what outlives the work."""

_IDLE_THREAD = "Trio thread "
"""Trio keeps threads that have nothing to do for ten seconds, under this name."""
_GOING_S = 2.0
"""Longest that a thread or process may still be seen that has ended or was told to."""


class LivesOnError(AssertionError):
    """Something outlived the work it belonged to."""


def cancel_everywhere(
    work: Work,
    *,
    backend: str,
    around: Around | None = None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Cancel `work` at its first wait, then anew at its second, and so on, until it ends by itself.

    Each time nothing of it may be left: no task, open file or socket, thread or child process.
    Needs `/proc`, as Linux has it.

    Args:
        work: What is run, in an event loop of its own each time.
        backend: "asyncio" or "trio".
        around: Opens what the work uses and what is not cancelled, such as an engine or a server;
            `work` gets it as its argument. It is given a moment to notice that the work is over.
        check: Called each time after the event loop has ended, to look for more.

    Returns:
        How often it was cancelled.

    Raises:
        LivesOnError: Something is left; says what, and at which wait the work was cancelled.

    Example:
        >>> assert cancel_everywhere(play_a_dialogue, backend="trio") > 20
        >>> assert cancel_everywhere(ask, backend="asyncio", around=lambda: http_server(answer))
    """
    times = 0
    while True:
        wait = 1 + times
        before = _threads_and_children()
        was_cancelled, left = _run(work, wait, backend, around)
        left += _lasting(before)
        if left:
            what = f"cancelled at wait {wait}" if was_cancelled else "not cancelled"
            raise LivesOnError(f"{what} on {backend}, and there is still: {', '.join(left)}")
        check()
        if not was_cancelled:
            return times
        times += 1


@contextmanager
def cancelled_at(wait: int) -> Iterator[anyio.CancelScope]:
    """A cancel scope that is cancelled as soon as the tasks begun in it have waited so often.

    Args:
        wait: As in `at_wait`.
    """
    with anyio.CancelScope() as scope, at_wait(wait, scope.cancel):
        yield scope


@contextmanager
def at_wait(wait: int, act: Callable[[], None]) -> Iterator[None]:
    """Do something as soon as the tasks begun in this block have waited so often.

    The task that opens the block does not count on asyncio: let the work be done in a task group.
    On trio every task counts.

    Args:
        wait: 1 for the first wait. Where there are fewer in the block, nothing is done.
        act: What is done, between two steps of the event loop. It does not wait.
    """
    waits = _Waits(wait, act)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio

        trio.lowlevel.add_instrument(waits)  # type: ignore[arg-type]
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(waits)  # type: ignore[arg-type]
        return
    usual = loop.get_task_factory()
    loop.set_task_factory(waits.make_task)
    try:
        yield
    finally:
        loop.set_task_factory(usual)
        waits.over = True


def _run(work: Work, wait: int, backend: str, around: Around | None) -> tuple[bool, list[str]]:
    """Run the work in an event loop of its own; whether it was cancelled, and what it left there."""

    async def main() -> tuple[bool, list[str]]:
        if around is None:
            return await cancelled_once(0.0)
        async with around() as held:
            return await cancelled_once(_GOING_S, held)

    async def cancelled_once(patience_s: float, *held: object) -> tuple[bool, list[str]]:
        await _some_rounds()  # the beginnings of the loop, and of what is around
        tasks, files = _tasks(), _files()
        with cancelled_at(wait) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(work, *held, name="work")
        left = _tasks() - tasks
        await _some_rounds()  # an event loop closes sockets in its own next round
        left |= _files() - files
        with anyio.move_on_after(patience_s):
            while left:
                await anyio.sleep(0.001)
                left = (_tasks() - tasks) | (_files() - files)
        return scope.cancelled_caught, sorted(left)

    return anyio.run(main, backend=backend)


async def _some_rounds() -> None:
    """Let the event loop do what it has put off; asyncio's way to wait for that takes 0.1 s."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


class _Waits:
    """Counts waits, and acts at one of them. An instrument of trio, a task factory of asyncio."""

    def __init__(self, wait: int, act: Callable[[], None]) -> None:
        self._to_come = wait
        self._act = act
        self.over = False

    def reached(self) -> None:
        """A task has come to a wait."""
        self._to_come -= 1
        if self._to_come == 0 and not self.over:
            self._act()

    def after_task_step(self, _task: object) -> None:
        """Called by trio when a task has given way, or has ended."""
        self.reached()

    def make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
    ) -> asyncio.Task[Any]:
        """Called by asyncio for each task that begins."""
        return asyncio.Task(_telling(coro, self.reached), loop=loop, **options)


async def _telling(coro: Coroutine[Any, Any, Any], reached: Callable[[], None]) -> Any:
    return await _step_by_step(coro, reached)


@types.coroutine
def _step_by_step(
    coro: Coroutine[Any, Any, Any], reached: Callable[[], None]
) -> Generator[Any, Any, Any]:
    """Run a coroutine as the event loop would, and tell each time that it waits."""
    go_on: Callable[[], Any] = partial(coro.send, None)
    while True:
        try:
            awaited = go_on()
        except StopIteration as end:
            return end.value
        reached()
        try:
            answer = yield awaited
        except BaseException as error:  # noqa: BLE001 - thrown on into the coroutine
            go_on = partial(coro.throw, error)
        else:
            go_on = partial(coro.send, answer)


def _tasks() -> set[str]:
    me = anyio.get_current_task().id
    return {f"task {task.name!r}" for task in anyio.get_running_tasks() if task.id != me}


def _files() -> set[str]:
    """Open files and sockets; each socket and pipe has a name of its own."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that was open to list the others
            found.add(f"{entry.readlink()} (fd {entry.name})")
    return found


def _threads_and_children() -> set[str]:
    found = {
        f"thread {thread.name!r} (id {thread.native_id})"
        for thread in threading.enumerate()
        if _IDLE_THREAD not in thread.name
    }
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            children = (task / "children").read_text(encoding="ascii").split()
            found |= {f"process {pid}" for pid in children}
    return found


def _lasting(before: set[str]) -> list[str]:
    """Threads and children that were not there before, and do not go."""
    patience = time.monotonic() + _GOING_S
    while (left := _threads_and_children() - before) and time.monotonic() < patience:
        time.sleep(0.005)  # a thread that has set its result still has to end
    return sorted(left)
