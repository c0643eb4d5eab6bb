"""From a domain's `tools` to a server with its deadlines and sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.server import MCPServer
from tool_kit import call, no_python

from muarl.errors import ToolServerError
from muarl.spec.tools import CommandToolsSpec, PythonToolsSpec
from muarl.testing.servers import WORLD_RESOURCE, broken_server, sound_server
from muarl.tools import tool_server
from muarl.world import World

pytestmark = pytest.mark.anyio

built: list[World] = []


def serve(world: World) -> MCPServer:
    built.append(world)
    server = MCPServer("echo")

    @server.tool()
    async def echo(text: str) -> str:
        return text

    return server


@pytest.mark.parametrize(("stateless", "times"), [(True, 1), (False, 2)])
async def test_a_python_reference_is_loaded_and_served_in_memory(
    stateless: bool, times: int, tmp_path: Path
) -> None:
    built.clear()
    asked: list[str] = []
    spec = PythonToolsSpec(python="shop/tools.py:serve", stateless=stateless, max_result_chars=4)
    server = tool_server([spec], tmp_path, lambda ref, index: asked.append(ref) or serve)
    assert built == []
    for _ in range(2):
        async with server.session(World({})) as session:
            result = await session.call(call("echo", text="long text"))
            assert result.content == "long\n[cut: the first 4 of 9 characters]"
    assert asked == ["shop/tools.py:serve"]
    assert len(built) == times


async def test_a_command_runs_in_the_domains_folder(tmp_path: Path) -> None:
    spec = CommandToolsSpec(command=[*sound_server()], world_resource=WORLD_RESOURCE)
    world = World({"n": 1})
    async with tool_server([spec], tmp_path, no_python).session(world) as session:
        await session.call(call("put", key="n", value=2))
        folder = await session.call(call("folder"))
        assert folder.content == str(tmp_path)
    assert world["n"] == 2


async def test_the_specs_deadlines_hold_for_a_command(tmp_path: Path) -> None:
    hanging = CommandToolsSpec(command=broken_server("hang_in_call"), call_timeout_s=0.1)
    with pytest.raises(ToolServerError, match=r"within 0\.1 s"):
        async with tool_server([hanging], tmp_path, no_python).session(World({})) as session:
            await session.call(call("get", key="n"))
