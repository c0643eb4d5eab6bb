"""Sending by aiohttp, which runs on asyncio only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from muarl.http.transport import (
    CONNECT_TIMEOUT_S,
    MAX_BYTES,
    PLAIN,
    HttpReply,
    HttpRequest,
    Send,
    Unreachable,
)

_KEEP_S = 3.0
"""How long an idle connection is kept: less than servers do (uvicorn, and so vLLM, 5 s), so that
none is closed by the other side just as it is used."""


@asynccontextmanager
async def session() -> AsyncIterator[Send]:
    """Connections that are kept from one request to the next, without a limit to their number."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as client:

        async def send_over(request: HttpRequest) -> HttpReply:
            try:
                async with client.request(
                    request.method,
                    request.url,
                    headers={**request.headers, **PLAIN},
                    data=request.body or None,
                    allow_redirects=False,
                ) as response:
                    body = bytearray()
                    async for chunk in response.content.iter_any():
                        body += chunk
                        if len(body) > MAX_BYTES:
                            raise Unreachable(f"the answer is longer than {MAX_BYTES} bytes")
                    retry_after = response.headers.get("Retry-After")
                    return HttpReply(response.status, bytes(body), retry_after)
            except (aiohttp.ClientError, OSError) as error:
                raise Unreachable(str(error) or type(error).__name__) from error

        yield send_over
