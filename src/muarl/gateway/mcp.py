"""A dialogue's tools over MCP, as streamable HTTP, one request at a time.

The world is that of the key, so there are no sessions to be kept: each request goes through the SDK's
transport and server anew, in the task of its own handler, and is answered as JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Scope

from muarl.errors import ToolServerError
from muarl.gateway.line import Line, WireError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.tools import ToolSession
from muarl.tools.serving import tools_as_server
from muarl.tools.serving_http import loopback_only


async def answer(request: web.Request, body: bytes, line: Line, port: int) -> web.Response:
    """What the server answers to a POST.

    Raises:
        WireError: The dialogue is over, or has a fault.
    """
    tools = _Tools(line)

    @asynccontextmanager
    async def open_tools() -> AsyncIterator[ToolSession]:
        yield tools

    manager = StreamableHTTPSessionManager(
        tools_as_server(line.name, open_tools),
        json_response=True,
        stateless=True,
        security_settings=loopback_only(port),
    )
    exchange = _Exchange(body)
    async with manager.run():
        await manager.handle_request(_scope(request), exchange.receive, exchange.send)
    if tools.refused is not None:
        raise tools.refused
    return exchange.response()


class _Tools:
    """The tools of a line, as a session."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.refused: WireError | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._line.tools

    async def call(self, call: ToolCall) -> ToolResult:
        try:
            return await self._line.call(call.name, call.arguments)
        except WireError as error:
            self.refused = error
            raise ToolServerError(str(error)) from error


def _scope(request: web.Request) -> Scope:
    return {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": b"",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
    }


class _Exchange:
    """One request and its answer, as ASGI sees them."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._status = 500
        self._headers: dict[str, str] = {}
        self._answer = bytearray()

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self._answer += message.get("body", b"")

    def response(self) -> web.Response:
        """The answer."""
        headers = {n: v for n, v in self._headers.items() if n.lower() != "content-length"}
        return web.Response(status=self._status, body=bytes(self._answer), headers=headers)
