"""Tools in Python that hold up the event loop are found while they do, and named.

All dialogues share one loop. A tool that waits in `time.sleep`, in a client that is not async, or that
computes for long, makes all of them wait, and no deadline can end its call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import FrameType, TracebackType
from typing import Self

from muarl.authors import PACKAGES, shown_file
from muarl.domain import Domain
from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.spec import PythonToolsSpec
from muarl.tools import ToolServer, ToolSession, sharing
from muarl.world import World

_PERIOD_S = 0.05
_AT_ONCE_S = 0.5
"""A tool that holds up the loop for this long is found."""
_IN_ALL_S = 3.0
"""Tools that do so for this long in all, a little at each call, are found as well."""
_LEAST_LOOKS = 3
"""Looks at one call in a row before it counts: a busy machine stops anybody for a moment."""


class LoopWatch:
    """Looks, from a thread of its own, whether the loop that opened it is stuck in a tool.

    Args:
        on_found: Told once, from that thread, while the tool still runs: it may never return.

    Attributes:
        found: Which tool holds up the loop, and where; "" for none.
    """

    def __init__(self, on_found: Callable[[str], None]) -> None:
        self.found = ""
        self._on_found = on_found
        self._moves = 0
        self._ended = threading.Event()
        self._loop = threading.get_ident()
        self._thread = threading.Thread(target=self._look, name="loop watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def moved(self) -> None:
        """The loop began or ended a call.

        Raises:
            ToolServerError: A tool holds it up.
        """
        self._moves += 1
        if self.found:
            raise ToolServerError(self.found)

    def _look(self) -> None:
        looks = 0
        before = self._moves
        in_all = 0.0
        while not self._ended.wait(_PERIOD_S):
            frame = held_by(sys._current_frames().get(self._loop))
            if frame is None or before != self._moves:
                looks, before = 0, self._moves
                continue
            looks += 1
            in_all += _PERIOD_S if looks >= _LEAST_LOOKS else 0
            if looks * _PERIOD_S >= _AT_ONCE_S or in_all >= _IN_ALL_S:
                self.found = _in_words(frame)
                self._on_found(self.found)
                return


def held_by(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of a domain's code that the MCP SDK has called, or None."""
    while frame is not None and not _is_named(frame, PACKAGES):
        frame = frame.f_back
    above = frame
    while above is not None and not _is_named(above, "mcp."):
        above = above.f_back
    return None if above is None else frame


def _is_named(frame: FrameType, prefix: str) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(prefix)


def _in_words(frame: FrameType) -> str:
    code = frame.f_code
    where = f"{shown_file(code.co_filename)}:{frame.f_lineno}, in {code.co_name}"
    return (
        f"a tool holds up the event loop ({where}): all dialogues wait, and no deadline can end the "
        "call. Await what takes long (`await anyio.sleep(...)`, an async client), or make the tool a "
        "plain `def`, which runs in a thread of its own"
    )


@contextmanager
def watching(domain: Domain, on_found: Callable[[str], None]) -> Iterator[None]:
    """Within the block, a tool of a domain's that holds up the loop is an error of its server.

    Args:
        domain: The domain.
        on_found: As for `LoopWatch`.

    Raises:
        SpecError: Its server cannot be imported.
    """
    if not any(isinstance(spec, PythonToolsSpec) for spec in domain.spec.all_servers):
        yield
        return
    agent, user = domain.server, domain.user_server
    with LoopWatch(on_found) as watch:
        domain.server = _WatchedServer(agent, watch)
        if user is not None:
            domain.user_server = _WatchedServer(user, watch)
        try:
            yield
        finally:
            domain.server = agent
            if user is not None:
                domain.user_server = user


class _WatchedServer:
    def __init__(self, server: ToolServer, watch: LoopWatch) -> None:
        self._server = server
        self._watch = watch

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _WatchedSession(session, self._watch)

    def shared(self) -> AbstractAsyncContextManager[None]:
        return sharing(self._server)


class _WatchedSession:
    def __init__(self, session: ToolSession, watch: LoopWatch) -> None:
        self._session = session
        self._watch = watch

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        self._watch.moved()
        result = await self._session.call(call)
        self._watch.moved()
        return result
