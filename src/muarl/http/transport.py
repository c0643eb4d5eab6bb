"""One HTTP request and its whole answer, on asyncio by aiohttp and on trio by h11.

Redirects are not followed and proxies from the environment are not used: a key goes to the host
that the run names, and nowhere else. Answers are taken uncompressed, so that what is read is as
long as what is sent. Cancelled, a request closes its connection, which is how a server learns that
nobody waits any more.

Chosen by measurement (`benchmarks/transport.py`, CPU per request at 2,000 at once): aiohttp with
connections kept 0.31 ms, with one per request 0.61 ms; h11 on trio 0.42 ms, httpx there 1.31 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec

CONNECT_TIMEOUT_S = 10.0
"""Longer than two lost SYN packets; a host that takes longer is down."""
MAX_BYTES = 16 << 20
"""No answer we ask for is as long; one that is comes from something else."""
PLAIN = {"Accept-Encoding": "identity"}


class HttpRequest(msgspec.Struct, frozen=True):
    """What to send.

    Attributes:
        method: `GET` or `POST`.
        url: Whole URL, http or https.
        headers: Sent as they are.
        body: May be empty.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


class HttpReply(msgspec.Struct, frozen=True):
    """What came back.

    Attributes:
        status: HTTP status.
        body: At most `MAX_BYTES`, whole or nothing.
        retry_after: The header of that name, if there was one.
    """

    status: int
    body: bytes
    retry_after: str | None = None


class Unreachable(Exception):
    """No complete reply came: refused, reset, cut off, unknown host, or too long."""


class Send(Protocol):
    """Sends one request. Raises Unreachable; does not limit how long the answer may take."""

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Send it and read the whole answer."""
        ...


async def send(request: HttpRequest) -> HttpReply:
    """Send one request over a connection of its own, which is closed in the same task."""
    async with connections() as send_over:
        return await send_over(request)


@asynccontextmanager
async def connections() -> AsyncIterator[Send]:
    """Connections to send over, as many as there are requests; all closed with the block.

    On asyncio a connection is kept for the next request; on trio each request has its own.
    """
    if _on_asyncio():
        from muarl.http.by_aiohttp import session

        async with session() as send_over:
            yield send_over
    else:
        from muarl.http.by_h11 import send_once

        yield send_once


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
