"""Tools of the shop, over the world of one dialogue."""

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world):
    server = MCPServer("shop")

    @server.tool()
    async def find_order(order_id: str) -> str:
        """Status of an order."""
        return world["orders"].get(order_id, "no such order")

    @server.tool()
    async def cancel_order(order_id: str) -> str:
        """Cancel a pending order."""
        if world["orders"].get(order_id) != "pending":
            raise ToolError("only pending orders can be cancelled")
        world["orders"][order_id] = "cancelled"
        return "ok"

    return server
