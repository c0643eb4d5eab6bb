"""One HTTP POST, on asyncio by aiohttp and on trio by httpx.

Each call opens its own connection and closes it in the same task. A chat model thinks for a second
or more, so the handshake is small change; in return thousands of dialogues share no pool, no pool
limit and no state, and a cancelled call leaves nothing open.

Redirects are not followed and proxies from the environment are not used: a key goes to the host
that the run names, and nowhere else. Answers are taken uncompressed, so that what is read is as
long as what is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import cache
from ssl import SSLContext
from typing import Protocol

import msgspec

CONNECT_TIMEOUT_S = 10.0
"""Longer than two lost SYN packets; a host that takes longer is down."""
_PLAIN = {"Accept-Encoding": "identity"}
MAX_BYTES = 4 << 20
"""No chat completion is as long; a reply that is comes from something else."""


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


class Post(Protocol):
    """Sends one request. Raises Unreachable; does not limit how long the answer may take."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
        """Send `body` and read the answer."""
        ...


async def post(url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Send one POST with the client that fits the running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return await post_by_httpx(url, headers, body)
    return await post_by_aiohttp(url, headers, body)


async def post_by_aiohttp(url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Needs asyncio."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.post(
                url, headers={**headers, **_PLAIN}, data=body, allow_redirects=False
            ) as response,
        ):
            whole = await _read(response.content.iter_any())
            return HttpReply(response.status, whole, response.headers.get("Retry-After"))
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(_words(error)) from error


async def post_by_httpx(url: str, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Works on trio, and on asyncio more slowly."""
    import httpx

    timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
    try:
        async with (
            httpx.AsyncClient(timeout=timeout, verify=_ssl(), trust_env=False) as client,
            client.stream("POST", url, headers={**headers, **_PLAIN}, content=body) as response,
        ):
            whole = await _read(response.aiter_raw())
            return HttpReply(response.status_code, whole, response.headers.get("Retry-After"))
    except (httpx.HTTPError, OSError) as error:
        raise Unreachable(_words(error)) from error


async def _read(chunks: AsyncIterator[bytes]) -> bytes:
    whole = bytearray()
    async for chunk in chunks:
        whole += chunk
        if len(whole) > MAX_BYTES:
            raise Unreachable(f"the answer is longer than {MAX_BYTES} bytes")
    return bytes(whole)


@cache
def _ssl() -> SSLContext:
    """Reading the certificates takes 16 ms, too long for every call."""
    import httpx

    return httpx.create_ssl_context()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
