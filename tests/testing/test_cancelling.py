"""The kit that cancels everywhere: it counts every wait, and finds what lives on."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from muarl.testing import LivesOnError, at_wait, cancel_everywhere, cancelled_at

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@both_backends
def test_every_wait_of_every_task_is_cancelled_once(backend: str) -> None:
    reached: list[list[str]] = []

    async def waits(name: str) -> None:
        for number in range(3):
            await anyio.lowlevel.checkpoint()
            reached[-1].append(f"{name}{number}")

    async def work() -> None:
        reached.append([])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waits, "a")
            tasks.start_soon(waits, "b")

    times = cancel_everywhere(work, backend=backend)
    assert times >= 7, "three waits of each, and that of the task that waits for them"
    assert len(reached) == times + 1
    assert sorted(reached[-1]) == ["a0", "a1", "a2", "b0", "b1", "b2"], "the last goes to its end"
    # Cancelled at each of its waits, a task has come to each of its lines, and no further.
    assert {len(r) for r in reached} >= {0, 1, 2, 3, 4}


@both_backends
def test_an_act_comes_at_its_wait_and_not_after_the_block(backend: str) -> None:
    acts: list[str] = []

    async def waits(count: int) -> None:
        for _ in range(count):
            await anyio.lowlevel.checkpoint()

    async def main() -> None:
        with at_wait(2, lambda: acts.append("second")):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waits, 5)
        with at_wait(1000, lambda: acts.append("late")):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waits, 5)
        with cancelled_at(1000) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waits, 5)
        assert not scope.cancel_called
        await waits(2000)

    anyio.run(main, backend=backend)
    assert acts == ["second"]


@contextmanager
def leaking() -> Iterator[list[Any]]:
    kept: list[Any] = []
    yield kept
    for thing in kept:
        if isinstance(thing, socket.socket):
            thing.close()
        elif isinstance(thing, subprocess.Popen):
            thing.kill()
            thing.wait()
        elif isinstance(thing, threading.Event):
            thing.set()


async def leaks_a_socket(kept: list[Any]) -> None:
    kept.append(socket.socket())
    await anyio.lowlevel.checkpoint()
    kept.pop().close()


async def leaks_a_process(kept: list[Any]) -> None:
    kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))  # noqa: ASYNC220
    await anyio.lowlevel.checkpoint()
    kept.pop().communicate(b"\n")


async def leaks_a_thread(kept: list[Any]) -> None:
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, name="forgotten", daemon=True).start()
    await anyio.lowlevel.checkpoint()
    kept.pop().set()


@both_backends
@pytest.mark.parametrize(
    ("leaks", "found"),
    [
        (leaks_a_socket, "socket:"),
        (leaks_a_process, "process "),
        (leaks_a_thread, "thread 'forgotten'"),
    ],
)
def test_what_lives_on_is_named(
    backend: str,
    leaks: Callable[[list[Any]], Coroutine[Any, Any, None]],
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muarl.testing.cancelling._GOING_S", 0.05)
    with leaking() as kept:
        says = rf"cancelled at wait \d+ on {backend}, and there is still: .*{found}"
        with pytest.raises(LivesOnError, match=says):
            cancel_everywhere(lambda: leaks(kept), backend=backend)


def test_a_task_that_outlives_its_maker_is_named() -> None:
    async def work() -> None:
        task = asyncio.get_running_loop().create_task(asyncio.sleep(9), name="forgotten")
        await anyio.sleep(0.001)
        task.cancel()

    with pytest.raises(LivesOnError, match="there is still: task 'forgotten'"):
        cancel_everywhere(work, backend="asyncio")


@both_backends
def test_what_is_around_the_work_outlives_it_and_is_told_each_time(backend: str) -> None:
    ends: list[int] = []

    @asynccontextmanager
    async def around() -> AsyncIterator[list[int]]:
        held: list[int] = []
        yield held
        await anyio.lowlevel.checkpoint()
        ends.append(len(held))

    async def work(held: list[int]) -> None:
        for number in range(3):
            await anyio.lowlevel.checkpoint()
            held.append(number)

    checks: list[None] = []
    times = cancel_everywhere(
        work, backend=backend, around=around, check=lambda: checks.append(None)
    )
    assert len(ends) == len(checks) == times + 1
    assert ends[-1] == 3
    assert set(ends) >= {0, 1, 2, 3}


@both_backends
def test_an_error_of_the_work_passes(backend: str) -> None:
    async def work() -> None:
        await anyio.lowlevel.checkpoint()
        raise LookupError("mine")

    with pytest.raises(ExceptionGroup) as caught:
        cancel_everywhere(work, backend=backend)
    assert caught.group_contains(LookupError, match="mine")
