"""One request that is expected to go well: its body, or which of two ways it went wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio

from muarl.http.breaker import Breaker, Permit
from muarl.http.key import ApiKey
from muarl.http.retry import (
    QUOTED,
    Backoff,
    PassingFailure,
    excerpt,
    may_pass,
    seconds_of,
    shortly,
    wait_of,
)
from muarl.http.transport import HttpRequest, Send, Unreachable

Call = Callable[..., Awaitable[bytes]]
"""`call` for one endpoint's key: `(method, url, body)` to the body of a 200."""

_TRIES = 3
_JSON = {"Content-Type": "application/json"}


class Refused(Exception):
    """Will go no better next time.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, words: str, status: int) -> None:
        self.status = status
        super().__init__(shortly(words))


async def call(send: Send, key: ApiKey, method: str, url: str, body: bytes = b"") -> bytes:
    """Send JSON and return the body of a 200.

    Raises:
        PassingFailure: Refused or broken connections, 408, 429, 5xx.
        Refused: Any other status, redirects among them.
    """
    try:
        reply = await send(HttpRequest(method, url, _JSON | key.headers, body))
    except Unreachable as error:
        raise PassingFailure(key.hide(f"cannot be reached: {error}")) from error
    if reply.status == 200:
        return reply.body
    text = key.hide_in_beginning(reply.body.decode("utf-8", "replace"), QUOTED)
    said = f"answered {reply.status}: {excerpt(text)}"
    if may_pass(reply.status):
        raise PassingFailure(said, seconds_of(reply.retry_after), is_busy=reply.status == 429)
    if reply.status in (401, 403):
        said += f" ({key.origin})"
    raise Refused(said, reply.status)


@contextmanager
def reported(breaker: Breaker, permit: Permit) -> Iterator[None]:
    """Tell an endpoint's breaker how a call in this block went, whatever way it ends.

    An endpoint that refuses, or has too much to do, is well; what we gave up says nothing about it.
    """
    try:
        yield
    except PassingFailure as failure:
        if failure.is_busy:
            breaker.succeeded(permit)
        else:
            breaker.failed(permit, anyio.current_time())
        raise
    except Refused:
        breaker.succeeded(permit)
        raise
    except BaseException:
        breaker.withdrawn(permit)
        raise
    breaker.succeeded(permit)


async def persistently(call: Call, method: str, url: str, body: bytes = b"") -> bytes:
    """`call` something that may be done twice, three times before giving up.

    Raises:
        PassingFailure: As the last try.
        Refused: As the first.
    """
    backoff = Backoff()
    for _ in range(_TRIES - 1):
        try:
            return await call(method, url, body)
        except PassingFailure as failure:
            await anyio.sleep(wait_of(failure, backoff))
    return await call(method, url, body)
