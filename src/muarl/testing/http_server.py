"""An HTTP server on loopback that misbehaves by a plan: for chat, token and any other endpoints.

It runs on asyncio and trio, in the task that opens it. Each connection carries one request, unless
the server is to keep them.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import anyio
import msgspec
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup, TaskStatus

from muarl.testing.plan import FaultPlan

HttpFault = Literal[
    "refused",
    "reset",
    "slow",
    "hang",
    "rate_limit",
    "rate_limit_wait",
    "server_error",
    "cut",
    "garbage",
    "wrong_form",
]
"""What becomes of a request: the connection is reset, and all further ones are refused for a while;
it is reset after the request was read; the answer comes late; or never; 429; 429 with Retry-After;
500; the answer ends in the middle of its body; it is no text at all; it is JSON that says something
else."""

HTTP_FAULTS: tuple[HttpFault, ...] = HttpFault.__args__  # type: ignore[attr-defined]
"""All of them."""

KeptFault = Literal["hung_up", "leftover", "late_leftover", "swapped"]
"""What can go wrong on a connection that is kept, besides: it is closed just as a request comes; the
answer is followed by a second one, at once; or a moment later, when the connection lies idle; or the
request before is answered once more, in place of this one."""

KEPT_FAULTS: tuple[KeptFault, ...] = KeptFault.__args__  # type: ignore[attr-defined]
"""All of them; for a server that keeps connections."""

_HOST = "127.0.0.1"
_MAX_HEAD = 64 << 10
_IDLE_S = 0.005
"""How long a connection lies idle before bytes come that nobody asked for."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER, on, no seconds


class HttpRequest(msgspec.Struct, frozen=True):
    """What a client sent.

    Attributes:
        method: Such as POST.
        path: Such as `/v1/chat/completions`.
        headers: Names in lower case.
        body: As it came.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer that is no 200 with JSON.

    Attributes:
        status: HTTP status.
        body: As it goes out.
        headers: Further ones.
    """

    status: int
    body: bytes = b""
    headers: dict[str, str] = {}


Answer = Callable[[HttpRequest], Any]
"""What a request is answered with where nothing goes wrong: anything that JSON can say, or an
HttpAnswer."""


class HttpServer:
    """A running server.

    Attributes:
        url: `http://127.0.0.1:41000`, without a path.
        requests: What it was asked, in order, misbehaviour included.
        live: Connections open now.
        connections: How many there were.
    """

    def __init__(
        self,
        answer: Answer,
        plan: FaultPlan[Any] | None,
        keep: bool,
        slow_s: float,
        retry_after_s: float,
        down_s: float,
    ) -> None:
        self._answer = answer
        self._plan = plan
        self._keep = keep
        self._last = b""
        self._slow_s = slow_s
        self._retry_after_s = retry_after_s
        self._down_s = down_s
        self._door: Listener[SocketStream]
        self.url = ""
        self.requests: list[HttpRequest] = []
        self.live = 0
        self.connections = 0

    async def serve(
        self, port: int, connections: TaskGroup, *, task_status: TaskStatus[None]
    ) -> None:
        """Listen; when the door is closed, open it again after a while."""
        while True:
            listening = await anyio.create_tcp_listener(
                local_host=_HOST, local_port=port, reuse_port=True, backlog=1024
            )
            (self._door,) = listening.listeners
            task_status.started()
            task_status = anyio.TASK_STATUS_IGNORED
            try:
                with suppress(anyio.ClosedResourceError):
                    await self._door.serve(self._connected, connections)
            finally:
                await self.close_door()
            await anyio.sleep(self._down_s)

    async def close_door(self) -> None:
        """Let nobody in. Cancelling `serve` would do, but asyncio forgets who just then came in."""
        with anyio.CancelScope(shield=True):
            await self._door.aclose()
            # On asyncio whoever was just about to accept slipped in and waits for ever; anyio 4.
            await self._door.aclose()

    async def _connected(self, stream: SocketStream) -> None:
        self.live += 1
        self.connections += 1
        try:
            async with stream:
                while await self._talk(stream):
                    pass
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            pass  # the client has left
        finally:
            self.live -= 1

    async def _talk(self, stream: SocketStream) -> bool:
        """Answer one request; whether the connection is kept for another."""
        request = await _read(stream)
        self.requests.append(request)
        # A request that is sent again draws anew, whatever else was asked meanwhile.
        fault = self._plan.draw((request.path, request.body)) if self._plan else None
        if fault == "hang":
            await stream.receive()  # returns when the client hangs up
            return False
        if fault == "hung_up":
            return False
        if fault in ("refused", "reset"):
            if fault == "refused":
                await self.close_door()
            raw = stream.extra(SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            await anyio.aclose_forcefully(stream)
            return False
        if fault == "slow":
            await anyio.sleep(self._slow_s)
        keeps = self._keep and request.headers.get("connection") != "close" and fault != "cut"
        before, self._last = self._last, self._response(fault, request)
        whole = _kept(self._last) if keeps else self._last
        if fault == "swapped" and before:
            whole = _kept(before) if keeps else before
        await stream.send(whole * 2 if fault == "leftover" else whole)
        if fault == "late_leftover":
            await anyio.sleep(_IDLE_S)
            await stream.send(whole)
        return keeps

    def _response(self, fault: str | None, request: HttpRequest) -> bytes:
        if fault in ("rate_limit", "rate_limit_wait"):
            wait = {"Retry-After": f"{self._retry_after_s:g}"} if fault == "rate_limit_wait" else {}
            return _http(429, b'{"error": {"message": "too many requests (injected)"}}', **wait)
        if fault == "server_error":
            return _http(500, b'{"error": {"message": "out of memory (injected)"}}')
        if fault == "garbage":
            return _http(200, b"\x00\xff\xfe{]\x80 nothing that makes sense")
        if fault == "wrong_form":
            return _http(200, b'{"choices": [], "object": "list", "data": {"choices": 3}}')
        said = self._answer(request)
        if isinstance(said, HttpAnswer):
            return _http(said.status, said.body, **said.headers)
        whole = _http(200, json.dumps(said).encode())
        if fault == "cut":
            body = len(whole) - whole.index(b"\r\n\r\n") - 4
            return whole[: -(body // 2 + 1)]
        return whole


async def _read(stream: SocketStream) -> HttpRequest:
    data = bytearray()
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
        if len(data) > _MAX_HEAD and b"\r\n\r\n" not in data:
            raise anyio.BrokenResourceError
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        body += await stream.receive()
    return HttpRequest(method, path, headers, body)


def _http(status: int, body: bytes, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
    lines += ["Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _kept(response: bytes) -> bytes:
    return response.replace(b"Connection: close", b"Connection: keep-alive", 1)


@asynccontextmanager
async def http_server(
    answer: Answer,
    plan: FaultPlan[Any] | None = None,
    *,
    keep: bool = False,
    slow_s: float = 0.2,
    retry_after_s: float = 1.0,
    down_s: float = 0.05,
) -> AsyncIterator[HttpServer]:
    """Serve on a free port of the loopback address for the length of the block.

    Args:
        answer: Answers requests where nothing goes wrong.
        plan: What goes wrong: `HttpFault`s and, where connections are kept, `KeptFault`s; None for
            nothing.
        keep: Keep connections for further requests, for clients that want that.
        slow_s: How late a slow answer is.
        retry_after_s: What 429 asks for.
        down_s: How long connections are refused.

    Example:
        >>> plan = FaultPlan(HTTP_FAULTS, rate=0.2)
        >>> async with http_server(chat_answer(lambda messages: "Hello."), plan) as server:
        ...     client = ChatClient(f"{server.url}/v1", "some-model")
    """
    # A socket that is bound and does not listen: it keeps the port while the server is down, and
    # whoever connects meanwhile is refused.
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port.bind((_HOST, 0))
        number = port.getsockname()[1]
        server = HttpServer(answer, plan, keep, slow_s, retry_after_s, down_s)
        server.url = f"http://{_HOST}:{number}"
        async with anyio.create_task_group() as tasks:
            await tasks.start(server.serve, number, tasks)
            try:
                yield server
            finally:
                await server.close_door()
                tasks.cancel_scope.cancel()


def chat_answer(say: Callable[[list[dict[str, Any]]], str]) -> Answer:
    """An OpenAI-compatible chat endpoint's answer.

    Args:
        say: From the messages of a request to the text of the next one.
    """

    def answer(request: HttpRequest) -> Any:
        asked = request.json()
        return {
            "id": "chat-1",
            "object": "chat.completion",
            "model": asked.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": say(asked["messages"])},
                    "finish_reason": "stop",
                }
            ],
        }

    return answer
