"""The desk's tool server. Tools are `async` so that they run on the event loop, not in threads."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world: Any) -> MCPServer:
    """All state lives in `world`, so one server can be shared by all dialogues."""
    server = MCPServer("desk")

    def find(order_id: str) -> Any:
        if order_id not in world["orders"]:
            raise ToolError(f"no order {order_id}")
        return world["orders"][order_id]

    def change(order_id: str, allowed: str, field: str, value: str) -> None:
        order = find(order_id)
        if order["status"] != allowed:
            raise ToolError(f"order is {order['status']}")
        order[field] = value

    @server.tool()
    async def find_orders(account: str) -> str:
        """Order numbers of an account."""
        mine = [key for key, order in world["orders"].items() if order["account"] == account]
        return ", ".join(mine) or "none"

    @server.tool()
    async def get_order(order_id: str) -> str:
        """Item and status of an order."""
        order = find(order_id)
        return f"{order['item']}, {order['status']}"

    @server.tool()
    async def cancel_order(order_id: str) -> str:
        """Cancel a pending order. Cannot be undone."""
        change(order_id, "pending", "status", "cancelled")
        return "ok"

    @server.tool()
    async def return_order(order_id: str) -> str:
        """Take back a delivered order. Cannot be undone."""
        change(order_id, "delivered", "status", "returned")
        return "ok"

    @server.tool()
    async def redirect_order(order_id: str, city: str) -> str:
        """Send a pending order to another city. Cannot be undone."""
        change(order_id, "pending", "city", city)
        return "ok"

    @server.tool()
    async def transfer_to_human() -> str:
        """Give up and hand the customer over."""
        return "ok"

    return server
