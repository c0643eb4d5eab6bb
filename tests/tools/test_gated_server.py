"""A tool server's own limit of calls at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest
from mcp.server import MCPServer
from tool_kit import call

from muarl.gate import current_lane
from muarl.spec.tools import PythonToolsSpec
from muarl.tools import ToolServer, tool_server
from muarl.world import World

pytestmark = pytest.mark.anyio


class Desks:
    """Two servers that note who is inside, and let nobody go before they are told to."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[str] = []
        self.go_on = anyio.Event()

    def server(self, name: str) -> MCPServer:
        server = MCPServer(name)

        @server.tool(name=name)
        async def ask(who: str) -> str:
            self.inside[name] += 1
            self.most[name] = max(self.most[name], self.inside[name])
            self.order.append(who)
            await self.go_on.wait()
            self.inside[name] -= 1
            return who

        return server

    def at_once(self, slow: int | None, fast: int | None) -> ToolServer:
        specs = [
            PythonToolsSpec(name=name, python=f"{name}.py:serve", at_once=places)
            for name, places in (("slow", slow), ("fast", fast))
        ]
        names = {"slow.py:serve": "slow", "fast.py:serve": "fast"}
        return tool_server(specs, Path(), lambda ref, index: lambda _world: self.server(names[ref]))


async def one_call(server: ToolServer, tool: str, who: str, lane: str) -> None:
    current_lane.set(lane)
    async with server.session(World({})) as session:
        assert (await session.call(call(tool, who=who))).content == who


async def all_wait() -> None:
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


async def test_each_server_has_a_limit_of_its_own() -> None:
    desks = Desks()
    server = desks.at_once(slow=2, fast=None)
    async with anyio.create_task_group() as dialogues:
        for number in range(5):
            for tool in ("slow", "fast"):
                dialogues.start_soon(one_call, server, tool, f"{tool} {number}", "a")
        with anyio.fail_after(60):
            while desks.inside != {"slow": 2, "fast": 5}:
                await anyio.lowlevel.checkpoint()
        await all_wait()
        desks.go_on.set()
    assert desks.most == {"slow": 2, "fast": 5}
    assert len(desks.order) == 10


async def test_tasks_take_turns_at_it() -> None:
    desks = Desks()
    server = desks.at_once(slow=1, fast=None)
    async with anyio.create_task_group() as dialogues:
        for number in range(3):
            dialogues.start_soon(one_call, server, "slow", f"many {number}", "many")
            await all_wait()
        dialogues.start_soon(one_call, server, "slow", "few", "few")
        await all_wait()
        desks.go_on.set()
    assert desks.order.index("few") == 2, "behind the one inside and one that waited longer"
