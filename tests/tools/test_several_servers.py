"""Several servers of one domain: names, hidden tools, limits of one tool, schemas."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer, Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from tool_kit import call

from muarl.errors import ToolServerError
from muarl.spec.tools import ToolLimitsSpec
from muarl.tools.carrier import Limits
from muarl.tools.memory import MemoryToolServer
from muarl.tools.several import SeveralToolServers
from muarl.world import World

pytestmark = pytest.mark.anyio


def echoes(*names: str, says: str) -> Callable[[World], MCPServer]:
    """A server whose tools answer with `says` and their own name."""

    def serve(world: World) -> MCPServer:
        server = MCPServer("echoes")
        for name in names:

            async def echo(name: str = name) -> str:
                world.setdefault("calls", []).append(f"{says}.{name}")
                return f"{says} {name}"

            server.tool(name=name)(echo)
        return server

    return serve


def memory(*names: str, says: str, **limits: Any) -> MemoryToolServer:
    return MemoryToolServer(echoes(*names, says=says), limits=Limits(**limits))


async def test_names_are_prefixed_only_where_they_clash() -> None:
    servers = {
        "shop": memory("find", "buy", says="shop"),
        "web.search": memory("find", says="web"),
    }
    world = World({})
    async with SeveralToolServers(servers).session(world) as session:
        assert [tool.name for tool in session.tools] == ["shop_find", "buy", "web_search_find"]
        results = [await session.call(call(tool.name)) for tool in session.tools]
        assert [(r.name, r.content, r.is_error) for r in results] == [
            ("shop_find", "shop find", False),
            ("buy", "shop buy", False),
            ("web_search_find", "web find", False),
        ]
        unknown = await session.call(call("find"))
    assert unknown.is_error
    assert unknown.content == "unknown tool 'find'; tools: shop_find, buy, web_search_find"
    assert world["calls"] == ["shop.find", "shop.buy", "web.find"]


async def test_a_hidden_tool_clashes_with_nothing_and_cannot_be_called() -> None:
    servers = {
        "shop": memory("find", "buy", says="shop"),
        "web": memory("find", says="web", hidden=frozenset(["find"])),
    }
    world = World({})
    async with SeveralToolServers(servers).session(world) as session:
        assert [tool.name for tool in session.tools] == ["find", "buy"]
        assert (await session.call(call("find"))).content == "shop find"
    async with servers["web"].session(world) as session:
        answer = await session.call(call("find"))
    assert answer.content == "unknown tool 'find'; tools: none"
    assert world["calls"] == ["shop.find"]


async def test_a_clash_that_prefixes_do_not_solve_is_an_error() -> None:
    servers = {
        "a": memory("b_c", "x", says="1"),
        "a_b": memory("c", "x", says="2"),
        "z": memory("c", says="3"),
        "a.b": memory("c", says="4"),
    }
    with pytest.raises(ToolServerError, match=r"two tools are named 'a_b_c'.*another `name`"):
        async with SeveralToolServers(servers).session(World({})):
            raise AssertionError("it has no tools to offer")


async def test_the_sessions_of_all_servers_end_with_the_dialogue() -> None:
    opened: list[str] = []

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        def session(self, world: World) -> Any:
            held = AsyncExitStack()
            opened.append(self.name)
            held.callback(opened.remove, self.name)

            class Session:
                tools = ()

                async def __aenter__(self) -> Any:
                    return self

                async def __aexit__(self, *error: object) -> None:
                    await held.aclose()

            return Session()

    broken = MemoryToolServer(lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    several = SeveralToolServers({"one": Noted("one"), "two": Noted("two"), "broken": broken})
    with pytest.raises(ToolServerError, match="could not be built"):
        async with several.session(World({})):
            raise AssertionError("one of them did not start")
    assert opened == []


@pytest.mark.parametrize("part", ["hidden", "limits"])
async def test_a_tool_that_is_spoken_of_and_not_there_is_an_error(part: str) -> None:
    limits: dict[str, Any] = {"hidden": frozenset(["byu"])}
    if part == "limits":
        limits = {"tools": {"byu": ToolLimitsSpec(call_timeout_s=1)}}
    with pytest.raises(
        ToolServerError, match=rf"has no tool 'byu' \(tools\.{part}\); did you mean"
    ):
        async with memory("find", "buy", says="shop", **limits).session(World({})):
            raise AssertionError("a limit of no tool limits nothing")


async def test_a_tool_may_have_limits_of_its_own() -> None:
    def serve(world: World) -> MCPServer:
        server = MCPServer("slow")

        @server.tool()
        async def long() -> str:
            return "0123456789"

        @server.tool()
        async def short() -> str:
            return "0123456789"

        @server.tool()
        async def hangs() -> str:
            await anyio.sleep_forever()
            return ""

        return server

    limits = Limits(
        max_result_chars=8,
        tools={
            "short": ToolLimitsSpec(max_result_chars=4),
            "hangs": ToolLimitsSpec(call_timeout_s=0.05),
        },
    )
    async with MemoryToolServer(serve, limits=limits).session(World({})) as session:
        assert (await session.call(call("long"))).content.startswith("01234567\n[cut")
        assert (await session.call(call("short"))).content.startswith("0123\n[cut")
    with pytest.raises(ToolServerError, match=r"'hangs' within 0\.05 s"):
        async with MemoryToolServer(serve, limits=limits).session(World({})) as session:
            await session.call(call("hangs"))


SCHEMA = {
    "type": "object",
    "title": "Größe",
    "properties": {
        "z": {"$ref": "#/$defs/point"},
        "a": {"oneOf": [{"const": 1}, {"type": "null"}], "default": None},
    },
    "required": ["z"],
    "additionalProperties": False,
    "$defs": {"point": {"type": "array", "prefixItems": [{"type": "number"}], "x-note": "kept"}},
}


async def test_a_schema_is_passed_on_exactly_as_the_server_gives_it() -> None:
    async def list_tools(*_: object) -> ListToolsResult:
        tool = Tool(name="plot", description="Ünicode.\n\n  Kept.", input_schema=SCHEMA)
        return ListToolsResult(tools=[tool])

    async def call_tool(*_: object) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="ok")])

    one = MemoryToolServer(
        lambda _: Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
    )
    for server in (one, SeveralToolServers({"one": one, "two": memory("find", says="x")})):
        async with server.session(World({})) as session:
            tool = session.tools[0]
            assert tool.parameters == SCHEMA
            assert list(tool.parameters["properties"]) == ["z", "a"]
            assert tool.description == "Ünicode.\n\n  Kept."
