"""Connections that are kept: closed as they are used again, or with bytes on them nobody asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream
from raw_listener import raw_listener

from muarl.http.transport import HttpRequest, Unreachable, connections
from muarl.testing import KEPT_FAULTS, FaultPlan, http_server
from muarl.testing.http_server import KeptFault

pytestmark = pytest.mark.anyio


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Stray:
    """Answers each request with its own body; after the first one, it sends `stray` unasked."""

    def __init__(self, stray: bytes, *, at_once: bool) -> None:
        self._stray = stray
        self._at_once = at_once
        self._requests = 0
        self.sent = anyio.Event()
        self.idle = anyio.Event()
        self.url = ""

    async def serve(self, stream: SocketStream) -> None:
        try:
            async with stream:
                while True:
                    data = b""
                    while not data.endswith(b"}"):
                        data += await stream.receive()
                    whole = answer(data.partition(b"\r\n\r\n")[2])
                    self._requests += 1
                    if self._requests > 1:
                        await stream.send(whole)
                    elif self._at_once:
                        await stream.send(whole + self._stray)
                        self.sent.set()
                    else:
                        await stream.send(whole)
                        await self.idle.wait()
                        await stream.send(self._stray)
                        self.sent.set()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass  # the client has left


@asynccontextmanager
async def stray_server(stray: bytes, *, at_once: bool) -> AsyncIterator[Stray]:
    server = Stray(stray, at_once=at_once)
    async with raw_listener(server.serve) as url:
        server.url = url + "/"
        yield server


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "when it lies idle"])
@pytest.mark.parametrize(
    "stray",
    [
        answer(b"{'of': 'another'}"),
        answer(b"x") * 2,
        b"garbage\r\n\r\n",
        b"\x00\xff",
        b"HTTP/1.1 2",
    ],
    ids=["an answer", "two answers", "garbage", "bytes", "half a head"],
)
async def test_what_comes_unasked_is_never_taken_for_the_answer_to_the_next_request(
    stray: bytes, at_once: bool, anyio_backend_name: str
) -> None:
    async with stray_server(stray, at_once=at_once) as server, connections() as over:

        async def ask(number: int) -> bytes:
            body = b'{"number": %d}' % number
            reply = await over(HttpRequest("POST", server.url, {}, body))
            assert reply.body == body
            return reply.body

        try:
            await ask(0)
        except Unreachable:
            assert at_once, "its own answer could not be told from what followed"
        server.idle.set()
        for _ in range(20):  # passes of the event loop in which it is sent and, on loopback, comes
            await anyio.lowlevel.checkpoint()
        assert server.sent.is_set() or anyio_backend_name == "trio"
        for number in (1, 2):
            await ask(number)


@pytest.mark.parametrize("fault", KEPT_FAULTS)
async def test_the_injector_misbehaves_on_kept_connections_as_it_says(
    fault: KeptFault, anyio_backend_name: str
) -> None:
    plan = FaultPlan([fault], rate=0.0)
    is_kept = anyio_backend_name == "asyncio"
    async with (
        http_server(lambda request: request.path, plan, keep=True) as server,
        connections() as over,
    ):

        async def ask(path: str) -> str:
            return (await over(HttpRequest("POST", server.url + path, {}, b"{}"))).body.decode()

        assert [await ask("/a"), await ask("/b")] == ['"/a"', '"/b"']
        assert server.connections == (1 if is_kept else 2)
        plan.rate = 1.0
        match fault:
            case "hung_up":
                with pytest.raises(Unreachable):
                    await ask("/c")
            case "swapped":
                assert await ask("/c") == '"/b"'
            case _:
                assert await ask("/c") == '"/c"'
        plan.rate = 0.0
        said = await ask("/d")
        # Bytes that come after the next request was sent look like its answer: see the policy's tests.
        assert said == '"/d"' or (fault == "late_leftover" and is_kept)
