"""A listener on the loopback that answers bytes as a test says, for what no sound server would send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream


@asynccontextmanager
async def raw_listener(serve: Callable[[SocketStream], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve each connection while the block is open; gives `http://127.0.0.1:PORT`."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        try:
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        finally:
            tasks.cancel_scope.cancel()
