"""Law L7: cancelled anywhere, a session leaves no task, no process and no file."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from mcp.server import MCPServer
from tool_kit import call, children

from muarl.testing.servers import WORLD_RESOURCE, broken_server, sound_server
from muarl.tools import ToolServer
from muarl.tools.memory import MemoryToolServer
from muarl.tools.stdio import MirrorToolServer, StdioToolServer
from muarl.world import World, plain

pytestmark = pytest.mark.anyio


def serve(world: World) -> MCPServer:
    server = MCPServer("slow")

    @server.tool()
    async def step(n: int) -> int:
        for _ in range(n):
            await anyio.lowlevel.checkpoint()
        world["steps"] = n
        return n

    return server


async def living_tasks() -> set[int]:
    return {task.id for task in anyio.get_running_tasks()}


async def cancelled_after(server: ToolServer, turns: int) -> bool:
    """Run a dialogue, cancel it after some turns of the event loop; whether it got that far."""
    finished = False

    async def talk() -> None:
        nonlocal finished
        async with server.session(World({})) as session:
            for n in range(3):
                await session.call(call("step", n=n))
        finished = True

    async with anyio.create_task_group() as group:
        group.start_soon(talk)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    return finished


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_memory_session_cancelled_at_any_await_leaves_no_task(stateless: bool) -> None:
    server = MemoryToolServer(serve, stateless=stateless)
    before = await living_tasks()
    turns = 0
    while not await cancelled_after(server, turns):
        assert await living_tasks() == before
        turns += 1
    assert turns > 3
    # And the server is none the worse for it.
    world = World({})
    async with server.session(world) as session:
        assert (await session.call(call("step", n=2))).content == "2"
    assert plain(world) == {"steps": 2}
    assert await living_tasks() == before


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("command", [sound_server(), broken_server("hang_in_call")])
async def test_a_stdio_session_cancelled_at_any_time_leaves_no_process_and_no_file(
    command: list[str], tmp_path: Path, temporary: Path
) -> None:
    server = MirrorToolServer(StdioToolServer(command, tmp_path), WORLD_RESOURCE)
    before = await living_tasks()
    delay = random.Random(7)
    for _ in range(6):
        with anyio.move_on_after(delay.uniform(0, 0.15)):
            async with server.session(World({"n": 1})) as session:
                while True:
                    await session.call(call("get", key="n"))
        assert not children()
        assert not os.listdir(temporary)
        assert await living_tasks() == before


async def test_a_stdio_session_cancelled_at_its_first_awaits_leaves_nothing(
    tmp_path: Path, temporary: Path
) -> None:
    server = StdioToolServer(sound_server(), tmp_path)
    before = await living_tasks()
    for turns in range(6):
        await cancelled_after(server, turns)
        assert not children()
        assert not os.listdir(temporary)
        assert await living_tasks() == before
