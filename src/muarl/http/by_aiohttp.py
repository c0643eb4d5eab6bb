"""Sending by aiohttp, which runs on asyncio only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio

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
_CLOSE_S = 1.0
"""Longest that is waited for connections to be gone; a TLS peer may let us wait for its good-bye."""


class _Connector(aiohttp.TCPConnector):
    """Never uses a connection again on which something came unasked.

    A second answer to one request, say, would be read as the answer to the next. aiohttp looks for
    such leftovers when a connection is put away, but not when it is taken out again.
    """

    # The method is not of aiohttp's public interface; tests/http/test_kept_connections.py fails
    # should another version not call it.
    async def _get(self, key: Any, traces: Any) -> Any:
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                break
            connection.close()
        return connection


@asynccontextmanager
async def session() -> AsyncIterator[Send]:
    """Connections that are kept from one request to the next, without a limit to their number."""
    client = aiohttp.ClientSession(
        connector=_Connector(limit=0, keepalive_timeout=_KEEP_S),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )

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
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    try:
        yield send_over
    finally:
        # Cancelled, it would close them all and leave a coroutine behind that nobody awaits.
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await client.close()
