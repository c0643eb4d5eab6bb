"""Processes that dialogues share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from tool_kit import call, children, no_python

from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.spec.tools import CommandToolsSpec
from muarl.testing.servers import sound_server
from muarl.tools import sharing, tool_server
from muarl.tools.pool import PooledToolServer
from muarl.world import World

pytestmark = pytest.mark.anyio


class Counting:
    """A server that counts its sessions; number `breaks` does not open."""

    def __init__(self, breaks: int = 0) -> None:
        self.breaks = breaks
        self.opened = self.live = 0

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[Numbered]:
        self.opened += 1
        if self.opened == self.breaks:
            await checkpoint()
            raise ToolServerError("did not start")
        self.live += 1
        try:
            yield Numbered(self.opened)
        finally:
            self.live -= 1


class Numbered:
    tools: tuple[ToolSpec, ...] = ()

    def __init__(self, number: int) -> None:
        self.number = number

    async def call(self, call: ToolCall) -> ToolResult:
        if call.name == "die":
            raise ToolServerError("died")
        return ToolResult(call.id, call.name, str(self.number))


async def at_once(pool: PooledToolServer, dialogues: int) -> list[str]:
    """Which session each of so many dialogues got that live at the same time."""
    got: list[str] = []
    all_in = anyio.Event()

    async def dialogue() -> None:
        async with pool.session(World({})) as session:
            got.append((await session.call(call("which"))).content)
            if len(got) == dialogues:
                all_in.set()
            await all_in.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(dialogues):
            tasks.start_soon(dialogue)
    return sorted(got)


def pooled(server: Counting, size: int) -> PooledToolServer:
    return PooledToolServer(server, size)  # type: ignore[arg-type]


async def test_dialogues_share_as_many_sessions_as_the_pool_has() -> None:
    server = Counting()
    pool = pooled(server, 2)
    async with pool.shared():
        assert await at_once(pool, 5) == ["1", "1", "1", "2", "2"]
        assert await at_once(pool, 1) == ["1"]
        assert server.opened == server.live == 2
    assert server.live == 0


async def test_outside_of_the_block_each_dialogue_has_its_own() -> None:
    server = Counting()
    assert await at_once(pooled(server, 2), 3) == ["1", "2", "3"]
    assert server.live == 0


async def test_a_session_that_failed_is_given_to_nobody_else() -> None:
    server = Counting()
    pool = pooled(server, 1)
    async with pool.shared():
        async with pool.session(World({})) as kept:
            with pytest.raises(ToolServerError, match="died"):
                async with pool.session(World({})) as session:
                    await session.call(call("die"))
            assert await at_once(pool, 1) == ["2"]
            assert (await kept.call(call("which"))).content == "1"
        await anyio.wait_all_tasks_blocked()
        assert server.live == 1
    assert server.live == 0


async def test_one_that_does_not_open_fails_those_who_wait_and_no_more() -> None:
    server = Counting(breaks=1)
    pool = pooled(server, 1)
    async with pool.shared():
        with pytest.raises(ToolServerError, match="did not start"):
            async with pool.session(World({})):
                raise AssertionError("it is not open")
        assert await at_once(pool, 2) == ["2", "2"]


async def test_what_ends_the_block_comes_out_as_it_is() -> None:
    server = Counting()
    pool = pooled(server, 1)
    with pytest.raises(ZeroDivisionError):
        async with pool.shared(), pool.session(World({})):
            raise ZeroDivisionError
    assert server.live == 0


async def test_a_stateless_command_is_one_process_for_many_dialogues(
    tmp_path: Path,
) -> None:
    spec = CommandToolsSpec(command=sound_server(), stateless=True, pool=1)
    server = tool_server([spec], tmp_path, no_python)
    async with sharing(server):
        homes = set()
        for _ in range(2):
            async with server.session(World({})) as session:
                homes.add((await session.call(call("environment"))).content)
                assert len(children()) == 1
        assert len(homes) == 1
    assert not children()
