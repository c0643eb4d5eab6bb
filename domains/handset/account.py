"""What the support desk can do: look lines up, resume them, sell data."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world: Any) -> MCPServer:
    """The agent's tools. They leave `world["device"]` alone: it is in somebody else's hand."""
    server = MCPServer("account")

    def find(number: str) -> Any:
        if number not in world["lines"]:
            raise ToolError(f"no line {number}")
        return world["lines"][number]

    @server.tool()
    async def get_line(number: str) -> dict[str, Any]:
        """Status, bill and data left of a line."""
        return dict(find(number))

    @server.tool()
    async def resume_line(number: str) -> str:
        """Resume a suspended line."""
        line = find(number)
        if line["status"] != "suspended":
            raise ToolError(f"the line is {line['status']}")
        line["status"] = "active"
        return "ok"

    @server.tool()
    async def add_data(number: str) -> str:
        """Add 2 GB, charged to the customer."""
        find(number)["gb_left"] += 2
        return "ok"

    @server.tool()
    async def transfer_to_human() -> str:
        """Give up and hand the customer over."""
        return "ok"

    return server
