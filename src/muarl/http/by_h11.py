"""Sending by h11 over anyio's sockets: on any event loop, one connection a request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from ssl import SSLContext, create_default_context
from urllib.parse import SplitResult, urlsplit

import anyio
import h11
from anyio.abc import ByteStream

from muarl.http.transport import (
    CONNECT_TIMEOUT_S,
    MAX_BYTES,
    PLAIN,
    HttpReply,
    HttpRequest,
    Unreachable,
)


async def send_once(request: HttpRequest) -> HttpReply:
    """Connect, send, read, close."""
    try:
        url = urlsplit(request.url)
        async with _connected(url) as stream:
            return await _exchange(stream, url, request)
    except (OSError, ValueError, anyio.BrokenResourceError, h11.ProtocolError) as error:
        raise Unreachable(str(error) or type(error).__name__) from error


@asynccontextmanager
async def _connected(url: SplitResult) -> AsyncIterator[ByteStream]:
    """A connection; closed without ceremony, since a half-sent request has no polite end."""
    host, is_https = url.hostname or "", url.scheme == "https"
    stream: ByteStream | None = None
    with anyio.move_on_after(CONNECT_TIMEOUT_S):
        port = url.port or (443 if is_https else 80)
        if is_https:
            stream = await anyio.connect_tcp(
                host, port, tls=True, ssl_context=_ssl(), tls_standard_compatible=False
            )
        else:
            stream = await anyio.connect_tcp(host, port)
    if stream is None:
        raise Unreachable(f"no connection within {CONNECT_TIMEOUT_S:g} s")
    try:
        yield stream
    finally:
        await anyio.aclose_forcefully(stream)


async def _exchange(stream: ByteStream, url: SplitResult, request: HttpRequest) -> HttpReply:
    connection = h11.Connection(h11.CLIENT)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    headers = {
        **request.headers,
        **PLAIN,
        "Host": url.netloc.rpartition("@")[2],
        "Content-Length": str(len(request.body)),
        "Connection": "close",
    }
    head = h11.Request(method=request.method, target=target, headers=list(headers.items()))
    parts = [connection.send(head), request.body and connection.send(h11.Data(request.body))]
    connection.send(h11.EndOfMessage())
    await stream.send(b"".join(part for part in parts if part))
    status, retry_after, body = 0, None, bytearray()
    while not isinstance(event := await _next_event(stream, connection), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            status = event.status_code
            found = dict(event.headers).get(b"retry-after")
            retry_after = found.decode("latin-1") if found else None
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BYTES:
                raise Unreachable(f"the answer is longer than {MAX_BYTES} bytes")
        elif isinstance(event, h11.ConnectionClosed):
            raise Unreachable("the connection was closed before the answer")
    return HttpReply(status, bytes(body), retry_after)


async def _next_event(stream: ByteStream, connection: h11.Connection) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        try:
            connection.receive_data(await stream.receive())
        except anyio.EndOfStream:
            connection.receive_data(b"")
    return event


@cache
def _ssl() -> SSLContext:
    """Reading the certificates takes 16 ms, too long for every request."""
    return create_default_context()
