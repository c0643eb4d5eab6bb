"""`muarl.tools.in_process` goes past the MCP SDK's public client: what it uses of the SDK's inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mcp
import pytest
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.connection import Connection
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

from muarl.tools.in_process import InProcessClient, _Exchange

WHAT_TO_DO = (
    f"the server kernel of mcp {version('mcp')} is not that of 2.3, for which "
    "src/muarl/tools/in_process.py was written: adapt it and this test, then the bounds of mcp in "
    "pyproject.toml"
)


@pytest.mark.parametrize(
    ("used", "takes"),
    [
        (ServerRunner, ["server", "connection", "lifespan_state", "init_options"]),
        (
            Connection.from_envelope,
            ["protocol_version", "client_info", "client_capabilities", "outbound"],
        ),
        (TransportContext, ["kind", "can_send_request", "headers"]),
        (aclose_shielded, ["connection"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_used_of_the_sdks_inside_takes_what_it_took(
    used: Callable[..., Any], takes: list[str]
) -> None:
    assert list(inspect.signature(used).parameters) == takes, WHAT_TO_DO


def test_a_request_has_all_that_the_sdks_kernel_may_ask_of_one() -> None:
    asked = {name for name in vars(DispatchContext) if not name.startswith("_")}
    asked |= set(DispatchContext.__annotations__)
    assert asked, WHAT_TO_DO
    assert asked <= set(dir(_Exchange(1))), WHAT_TO_DO


def serve() -> MCPServer:
    server = MCPServer("shop")

    @server.tool()
    def price(item: str, count: int = 1) -> int:
        """What so many of an item cost."""
        if item == "moon":
            raise ToolError("not for sale")
        return 3 * count

    return server


CALLS = {
    "an answer": ("price", {"item": "pen", "count": 2}),
    "a tool's error": ("price", {"item": "moon"}),
    "wrong arguments": ("price", {"count": "many"}),
    "an unknown tool": ("prize", {}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("which", CALLS)
async def test_its_answers_are_those_that_the_sdks_own_client_gets(which: str) -> None:
    name, arguments = CALLS[which]

    async def by_ours() -> tuple[Any, Any]:
        async with InProcessClient(serve()._lowlevel_server) as client:
            offered = (await client.list_tools(None)).tools
            params = CallToolRequestParams(name=name, arguments=arguments)
            try:
                return offered, await client.send(CallToolRequest(params=params), CallToolResult)
            except MCPError as error:
                return offered, str(error)

    async def by_theirs() -> tuple[Any, Any]:
        async with mcp.Client(serve()) as client:
            offered = (await client.list_tools()).tools
            try:
                return offered, await client.call_tool(name, arguments)
            except MCPError as error:
                return offered, str(error)

    assert await by_ours() == await by_theirs(), WHAT_TO_DO
