"""A domain's tools as an MCP server of their own, for clients that know nothing of muarl.

One `mcp.server.Server` is one session: its lifespan opens the tools over a world, and closes them.
What the client is shown and answered is what a policy would be: hidden tools stay hidden, limits hold.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from muarl.errors import ToolServerError
from muarl.json_values import json_problem
from muarl.messages import ToolCall, ToolSpec, error_result
from muarl.tools.protocol import ToolSession
from muarl.version import __version__

OpenTools = Callable[[], AbstractAsyncContextManager[ToolSession]]
"""Opens a session over a fresh world."""

_Context = ServerRequestContext[ToolSession]


def tools_as_server(name: str, open_tools: OpenTools) -> Server[ToolSession]:
    """An MCP server for one session.

    Args:
        name: What the server is called.
        open_tools: Entered when the session begins, by the task that ends it.
    """
    numbers = itertools.count(1)
    in_order = anyio.Lock()  # a world has one writer: calls run in the order in which they come

    @asynccontextmanager
    async def lifespan(_: Server[ToolSession]) -> AsyncIterator[ToolSession]:
        async with open_tools() as session:
            yield session

    async def list_tools(ctx: _Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_as_tool(tool) for tool in ctx.lifespan_context.tools])

    async def call_tool(ctx: _Context, params: CallToolRequestParams) -> CallToolResult:
        call = ToolCall(f"call_{next(numbers)}", params.name, params.arguments or {})
        if problem := json_problem(call.arguments):
            result = error_result(call, f"wrong arguments: {problem}")
        else:
            async with in_order:
                try:
                    result = await ctx.lifespan_context.call(call)
                except ToolServerError as error:
                    raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
        content = [TextContent(type="text", text=result.content)]
        return CallToolResult(content=list(content), is_error=result.is_error)

    return Server(
        name,
        version=__version__,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _as_tool(tool: ToolSpec) -> Tool:
    return Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
