"""Tools: an MCP server of the official SDK over the world of one dialogue.

What the model reads of a tool is what stands here: name, type hints and docstring.
"""

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world: Any) -> MCPServer:
    """All state is in `world`, so that one server can serve all dialogues (`stateless`)."""
    server = MCPServer("NAME")

    def find(order_id: str) -> Any:
        if order_id not in world["orders"]:
            # A refusal: the model reads it. Any other exception would be a bug of the tool's.
            raise ToolError(f"no order {order_id}")
        return world["orders"][order_id]

    @server.tool()
    async def find_order(order_id: str) -> str:
        """Item and status of an order."""
        order = find(order_id)
        return f"{order['item']}, {order['status']}"

    @server.tool()
    async def cancel_order(order_id: str) -> str:
        """Cancel a pending order. Cannot be undone."""
        order = find(order_id)
        if order["status"] != "pending":
            raise ToolError(f"order is {order['status']}")
        order["status"] = "cancelled"
        return "ok"

    return server
