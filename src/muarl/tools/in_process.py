"""An MCP client of a server in this process: the call is a call, in the caller's own task.

Requests go straight into the SDK's server kernel (`mcp.server.runner.ServerRunner`), as the wire's
own dictionaries: the server checks, dispatches and answers as it does over any transport, and
nothing is skipped there. What the SDK's in-memory `Client` adds around that is left out, since a
dialogue pays for it with every call: a dispatcher and a session with a task each, a connection per
request, a second check of what the server has just checked. Memory per dialogue falls likewise.

There is no way back: the newest protocol lets no server ask its client, and nobody reads progress.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from mcp import MCPError
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Request,
    Result,
)
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from muarl.authors import RAISED, as_exceptions, let_others_pass
from muarl.tools.sdk_logs import hear

Answer = TypeVar("Answer", bound=Result)

_INFO = {"name": "muarl", "version": "1"}
_ENVELOPE = {
    PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
    CLIENT_INFO_META_KEY: _INFO,
    CLIENT_CAPABILITIES_META_KEY: dict[str, Any](),
}
"""What every request carries: which protocol is spoken, and by whom."""

_HERE = TransportContext(kind="direct", can_send_request=False)


class InProcessClient:
    """Connected to a server for the length of an `async with`.

    Args:
        server: The server.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._runner: ServerRunner[Any]
        self._held: AsyncExitStack

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as held:
            with as_exceptions():
                state = await held.enter_async_context(self._server.lifespan(self._server))
            connection = Connection.from_envelope(LATEST_MODERN_VERSION, _INFO, {})
            held.push_async_callback(aclose_shielded, connection)
            self._runner = ServerRunner(self._server, connection, state)
            self._held = held.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with as_exceptions():
            await self._held.__aexit__(kind, error, trace)

    async def send(self, request: Request[Any, Any], answer: type[Answer]) -> Answer:
        """Send a request and give its answer.

        Raises:
            MCPError: The server answered with a protocol error.
            ValidationError: It answered with something else than `answer`.
        """
        wire = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        params = {**(wire.get("params") or {}), "_meta": _ENVELOPE}
        exchange = _Exchange(next(self._numbers))
        try:
            raw = await self._runner.on_request(exchange, wire["method"], params)
        except MCPError:
            raise
        except ValidationError:
            raise MCPError(code=INVALID_PARAMS, message="Invalid request parameters") from None
        except RAISED as error:  # boundary: the author's server raises anything
            let_others_pass(error)
            hear(error)
            raise MCPError(code=INTERNAL_ERROR, message="Internal server error") from error
        return answer.model_validate(raw, by_name=False)

    async def list_tools(self, cursor: str | None) -> ListToolsResult:
        """A page of the tools the server offers."""
        page = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
        return await self.send(page, ListToolsResult)


class _Exchange:
    """One request as the server's kernel sees it (`mcp.shared.dispatcher.DispatchContext`)."""

    transport = _HERE
    can_send_request = False
    message_metadata = None

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self._cancel_requested: anyio.Event | None = None

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: who cancels a call here cancels the task it runs in."""
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Nobody listens."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Nobody looks."""
