"""An HTTP application on the loopback of this machine, for as long as somebody needs it.

Nothing but this machine reaches it. A client has so long to send the head of a request, and a
connection that says nothing is closed; what a handler awaits is cancelled when its client hangs up.

aiohttp's server is asyncio-only, so this is too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from muarl.errors import SetupError

HOST = "127.0.0.1"
_HEAD_S = 20.0
"""Seconds that a connection may stay open without the whole head of a request."""
_BACKLOG = 1024
"""Connections that may wait to be accepted: hundreds of dialogues begin at once."""
_GOODBYE_S = 1.0
"""Seconds that requests may still take when it closes, and what is left of a refused one."""


def _is_no_senders_doing(record: logging.LogRecord) -> bool:
    """What is no HTTP is answered, and not logged: the error repeats it, with the key that may be in it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, (HttpProcessingError, web.RequestPayloadError))


logger = logging.getLogger(__name__)
logger.addFilter(_is_no_senders_doing)


def asyncio_only(what: str) -> None:
    """Refuse an event loop on which no application can listen.

    Raises:
        SetupError: It is trio's.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise SetupError(
            f"{what} runs on asyncio only. Start your program with asyncio.run(main()), or with "
            "anyio.run(main, backend='asyncio')."
        ) from None


@asynccontextmanager
async def listening(
    app: web.Application, port: int = 0, *, advice: str = "", head_s: float = _HEAD_S
) -> AsyncIterator[int]:
    """Serve until the block ends; the port.

    Args:
        app: What answers.
        port: 0 takes a free one.
        advice: What to do where the port is taken.
        head_s: Seconds that a connection may stay open without the whole head of a request.

    Raises:
        SetupError: The port is taken.
    """
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_GOODBYE_S,
        keepalive_timeout=head_s,
        lingering_time=_GOODBYE_S,
        logger=logger,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port, backlog=_BACKLOG).start()
        except OSError as error:
            then = f"; {advice}" if advice else ""
            raise SetupError(f"cannot listen on port {port}: {error.strerror}{then}") from error
        yield runner.addresses[0][1]
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
