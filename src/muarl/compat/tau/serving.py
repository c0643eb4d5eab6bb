"""Toolkits as MCP servers: schemas as given, arguments as they come, answers as upstream words them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from muarl.compat.tau.toolkit import Toolkit
from muarl.world import World


def served(world: World, schemas: Sequence[Any], kit: Callable[[Any], Toolkit]) -> Server[Any]:
    """A server that keeps nothing outside `world`.

    Args:
        world: What the tools read and write.
        schemas: What they are shown as; a call of another tool is answered as upstream answers it.
        kit: Their code over a world.
    """
    offered = [
        Tool(
            name=schema["name"],
            description=schema.get("description", ""),
            input_schema=_as_object(schema["parameters"]),
        )
        for schema in schemas
    ]
    names = {tool.name for tool in offered}

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        tools = kit(world)
        if params.name in names:
            answer = tools.call(params.name, params.arguments or {})
            text, is_error = answer.text, answer.is_error
        else:  # of another version of the benchmark, or of none
            text, is_error = tools.unknown(params.name), True
        content = [TextContent(type="text", text=text)]
        return CallToolResult(content=list(content), is_error=is_error)

    return Server("tau", on_list_tools=list_tools, on_call_tool=call_tool)


def _as_object(parameters: dict[str, Any]) -> dict[str, Any]:
    """MCP wants every schema to say that it is one of an object, as these do already."""
    return {"type": "object", **parameters}
