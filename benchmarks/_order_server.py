"""The MCP server of `mcp_overhead.py`, as a process of its own: `_order_server.py stdio|http`.

Needs the SDK only. `http` prints the port it listens on, on the loopback interface.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server import MCPServer

WORLD = {"orders": {f"K{n:02}": {"item": "lamp", "status": "pending"} for n in range(50)}}
RESOURCE = "world://state"


def look_up(world: Any) -> Callable[[str], Awaitable[str]]:
    """The tool, over a world."""

    async def get_order(order_id: str) -> str:
        order = world["orders"][order_id]
        return f"{order['item']}, {order['status']}"

    return get_order


def serve(world: Any) -> MCPServer:
    """The server, whatever carries it."""
    server = MCPServer("desk", log_level="ERROR")
    server.tool()(look_up(world))

    @server.resource(RESOURCE)
    def state() -> str:
        return json.dumps(world)

    return server


def serve_http() -> None:
    """Serve streamable HTTP until the process is ended."""
    import uvicorn

    app = serve(WORLD).streamable_http_app(json_response=True, stateless_http=True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # before anybody knows where, or who is quick is turned away
        print(listener.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve_http()
    else:
        with open(os.environ["MUARL_WORLD"], encoding="utf-8") as file:
            serve(json.load(file)).run("stdio")
