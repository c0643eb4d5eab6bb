"""Sessions of `tools_as_server` over streamable HTTP: an ASGI application.

The SDK's session manager opens a server's lifespan once for all sessions. Here each session has tools
over a world of its own, so each has a manager of its own, which holds that one session.

The newest protocol knows no sessions over HTTP, and so no world that is a client's own: it is refused
in the way that makes clients fall back to the handshake.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types import INTERNAL_ERROR, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from muarl.errors import ToolServerError

PATH = "/mcp"
_SESSION = "mcp-session-id"
_MAX_BODY = 4_000_000
_VERSION = "mcp-protocol-version"

logger = logging.getLogger(__name__)


def loopback_only(port: int) -> TransportSecuritySettings:
    """Lets nobody in who came by another name, or from a page of another site."""
    names = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    return TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )


class _Session:
    """One client's session, alive in a task of its own."""

    def __init__(self, server: Server[Any], security: TransportSecuritySettings) -> None:
        self.manager = StreamableHTTPSessionManager(
            server, security_settings=security, session_idle_timeout=None, max_sessions=1
        )
        self.alive = anyio.CancelScope()
        self.under_way = 0


class HttpSessions:
    """The application; its sessions live while `open` is.

    Args:
        new_server: Makes the server of one session.
        security: Which hosts and origins are let in.
        max_sessions: At once.
        idle_s: Seconds after which a session ends that nobody uses.
        body_s: Seconds that a client may take to send a request.
    """

    def __init__(
        self,
        new_server: Callable[[], Server[Any]],
        security: TransportSecuritySettings,
        *,
        max_sessions: int = 64,
        idle_s: float = 1800.0,
        body_s: float = 10.0,
    ) -> None:
        self._new_server = new_server
        self._security = security
        self._guard = TransportSecurityMiddleware(security)
        self._max_sessions = max_sessions
        self._idle_s = idle_s
        self._body_s = body_s
        self._sessions: dict[str, _Session] = {}
        self._begun = 0
        self._tasks: TaskGroup

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Sessions may begin within the block, and end with it."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI)."""
        if scope["type"] != "http":
            return
        answer = await self._refusal(scope, receive)
        if answer is None and scope["method"] == "POST":
            # Before a session is begun for it: what is sent by halves is to hold up nobody.
            read = await self._whole(receive)
            if read is None:
                return
            answer, receive = (read, receive) if isinstance(read, Response) else (None, read)
        if answer is not None:
            await answer(scope, receive, send)
            return
        known = Headers(scope=scope).get(_SESSION)
        if known is not None:
            await self._go_on(known, scope, receive, send)
        else:
            await self._begin(scope, receive, send)

    async def _whole(self, receive: Receive) -> Receive | Response | None:
        """What gives a request's body again, once all of it is here; None if the client hung up."""
        body = bytearray()
        with anyio.move_on_after(self._body_s) as waiting:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > _MAX_BODY:
                    return Response(f"more than {_MAX_BODY} bytes", 413, {"connection": "close"})
        if waiting.cancelled_caught:
            late = f"the rest did not come within {self._body_s:g} s"
            return Response(late, 408, {"connection": "close"})
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        return again

    async def _refusal(self, scope: Scope, receive: Receive) -> Response | None:
        """Why a request is not let in, before anything is begun for it."""
        if scope["path"] != PATH:
            return Response(f"the tools are at {PATH}", status_code=404)
        post = scope["method"] == "POST"
        if (wrong := await self._guard.validate_request(Request(scope, receive), post)) is not None:
            return wrong
        headers = Headers(scope=scope)
        version = headers.get(_VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return _error(
                400,
                UNSUPPORTED_PROTOCOL_VERSION,
                "this server keeps a world for each session: begin with `initialize`",
                {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version},
            )
        if headers.get(_SESSION) is None and not post:
            return Response("begin with a POST of `initialize`", status_code=400)
        return None

    async def _go_on(self, known: str, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(known)
        if session is None or session.alive.cancel_called:
            await _error(404, INTERNAL_ERROR, "there is no such session")(scope, receive, send)
            return
        with self._in_use(session):
            await session.manager.handle_request(scope, receive, send)
        if scope["method"] == "DELETE":
            session.alive.cancel()

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._begun >= self._max_sessions:
            await _error(503, INTERNAL_ERROR, "too many sessions")(scope, receive, send)
            return
        session = _Session(self._new_server(), self._security)
        self._begun += 1
        try:
            await self._tasks.start(self._live, session)
        except ToolServerError as error:
            await _error(503, INTERNAL_ERROR, str(error))(scope, receive, send)
            return
        established = False

        async def heard(message: Message) -> None:
            nonlocal established
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = Headers(raw=message["headers"]).get(_SESSION)
                if name is not None:
                    established = True
                    self._sessions[name] = session
            await send(message)

        try:
            with self._in_use(session):
                await session.manager.handle_request(scope, receive, heard)
        finally:
            if not established:
                session.alive.cancel()

    async def _live(self, session: _Session, *, task_status: TaskStatus[None]) -> None:
        """Be the session, from first to last: what is opened for it is closed here."""
        started = False
        try:
            async with session.manager.run():
                started = True
                task_status.started()
                try:
                    with session.alive:
                        await anyio.sleep_forever()
                finally:
                    self._forget(session)  # before it is closed: nobody is to find it half closed
        except ToolServerError as error:
            if not started:
                raise
            logger.warning("a session ended: %s", error)
        finally:
            self._begun -= 1

    def _forget(self, session: _Session) -> None:
        for name in [name for name, one in self._sessions.items() if one is session]:
            del self._sessions[name]

    def _in_use(self, session: _Session) -> _InUse:
        return _InUse(session, self._idle_s)


class _InUse:
    """While a request is under way its session is not idle."""

    def __init__(self, session: _Session, idle_s: float) -> None:
        self._session = session
        self._idle_s = idle_s

    def __enter__(self) -> None:
        self._session.under_way += 1
        self._session.alive.deadline = math.inf

    def __exit__(self, *_: object) -> None:
        self._session.under_way -= 1
        if not self._session.under_way:
            self._session.alive.deadline = anyio.current_time() + self._idle_s


def _error(status: int, code: int, message: str, data: object = None) -> JSONResponse:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=status)
