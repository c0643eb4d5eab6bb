"""One request over real sockets: what comes back, what is unreachable, what is left behind."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream
from raw_listener import raw_listener

from muarl.http.transport import (
    MAX_BYTES,
    HttpReply,
    HttpRequest,
    Unreachable,
    connections,
    send,
)
from muarl.testing.http_server import HttpAnswer, http_server
from muarl.testing.plan import FaultPlan

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def post(url: str, body: bytes = b"{}", **headers: str) -> HttpRequest:
    return HttpRequest("POST", url, headers, body)


class Raw:
    """A server that answers each request with given bytes, and keeps its connections open."""

    def __init__(self, answer: bytes, *, closes: bool) -> None:
        self._answer = answer
        self._closes = closes
        self.url = ""
        self.requests = 0
        self.connections = 0
        self.open = 0

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                while True:
                    data = b""
                    while not data.endswith(b"}"):
                        data += await stream.receive()
                    self.requests += 1
                    if self._answer:
                        await stream.send(self._answer)
                    if self._closes:
                        return
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass  # the client has left
        finally:
            self.open -= 1


@asynccontextmanager
async def raw(answer: bytes, *, closes: bool = False) -> AsyncIterator[Raw]:
    state = Raw(answer, closes=closes)
    async with raw_listener(state.serve) as url:
        state.url = url + "/v1/x?a=b"
        yield state


async def test_method_path_headers_and_body_arrive_as_given() -> None:
    async with http_server(lambda request: {"asked": request.path}) as server:
        reply = await send(post(server.url + "/a/b?c=d", b'{"e": 1}', **{"X-Key": "v"}))
        assert reply == HttpReply(200, b'{"asked": "/a/b?c=d"}')
        await send(HttpRequest("GET", server.url + "/health"))
    first, second = server.requests
    assert (first.method, first.body, first.headers["x-key"]) == ("POST", b'{"e": 1}', "v")
    assert first.headers["accept-encoding"] == "identity"
    assert (second.method, second.path, second.body) == ("GET", "/health", b"")


async def test_status_and_retry_after_come_back() -> None:
    answer = HttpAnswer(429, b"busy", {"Retry-After": "17"})
    async with http_server(lambda _: answer) as server:
        assert await send(post(server.url)) == HttpReply(429, b"busy", "17")


@pytest.mark.parametrize(
    "answer",
    [OK, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"],
    ids=["length", "chunked"],
)
async def test_a_body_is_read_whole(answer: bytes) -> None:
    async with raw(answer) as server:
        assert (await send(post(server.url))).body == b"hi"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhi",
        b"\x00\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "no http", "no length", "no chunk"],
)
async def test_what_is_no_whole_answer_is_unreachable(answer: bytes) -> None:
    async with raw(answer, closes=True) as server:
        with pytest.raises(Unreachable), anyio.fail_after(60):
            await send(post(server.url))


async def test_a_refused_connection_is_unreachable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(Unreachable):
            await send(post(f"http://127.0.0.1:{held.getsockname()[1]}/"))


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://127.0.0.1:99999/",
        "http://no such host/",
        "http://../",
        f"http://{70 * 'a'}/",
    ],
)
async def test_what_is_no_url_is_unreachable(url: str) -> None:
    with pytest.raises(Unreachable):
        await send(post(url))


async def test_an_endless_answer_is_cut_off() -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {MAX_BYTES + 1}\r\n\r\n".encode()
    async with raw(head + b"x" * (MAX_BYTES + 1)) as server:
        with pytest.raises(Unreachable, match="longer than"):
            await send(post(server.url))


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    async with raw(b"") as server, connections() as over:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(over, post(server.url))
            with anyio.fail_after(60):
                while server.requests < 3:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            while server.open:
                await anyio.lowlevel.checkpoint()


async def test_all_connections_close_with_the_block() -> None:
    async with raw(OK) as server:
        async with connections() as over:
            for _ in range(3):
                await over(post(server.url))
        with anyio.fail_after(60):
            while server.open:
                await anyio.lowlevel.checkpoint()


async def test_on_asyncio_a_connection_serves_one_request_after_the_other(
    anyio_backend_name: str,
) -> None:
    async with raw(OK) as server, connections() as over:
        for _ in range(5):
            await over(post(server.url))
    assert server.requests == 5
    assert server.connections == (1 if anyio_backend_name == "asyncio" else 5)


async def test_two_hundred_requests_at_once_are_not_held_back_by_a_pool() -> None:
    waiting, all_there = 0, anyio.Event()

    async def answer(stream: SocketStream) -> None:
        nonlocal waiting
        async with stream:
            await stream.receive()
            waiting += 1
            if waiting == 200:
                all_there.set()
            await all_there.wait()
            await stream.send(OK)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=256)
    url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        async with connections() as over, anyio.create_task_group() as asking:
            with anyio.fail_after(60):
                for _ in range(200):
                    asking.start_soon(over, HttpRequest("GET", url))
                await all_there.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("fault", ["reset", "refused"])
async def test_a_reset_is_unreachable_and_the_next_request_finds_its_way(fault: str) -> None:
    plan = FaultPlan([fault], rate=1.0)
    async with http_server(lambda _: {}, plan, down_s=0.0) as server, connections() as over:  # type: ignore[arg-type]
        with pytest.raises(Unreachable):
            await over(post(server.url))
        plan.rate = 0.0
        with anyio.fail_after(60):
            while True:
                try:
                    assert (await over(post(server.url))).status == 200
                    break
                except Unreachable:  # it listens again in a moment
                    await anyio.lowlevel.checkpoint()
