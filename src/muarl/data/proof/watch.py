"""Calls of a domain's tools, watched while they go on: which they are, and which never end.

All dialogues share one loop. A tool that waits in `time.sleep`, in a client that is not async, or that
computes for long, makes all of them wait, and no deadline can end its call. Nor can one end a plain
`def`, which runs in a thread. Such tools are named while they run, as they may never return.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import FrameType
from typing import NamedTuple

from muarl.authors import frames_of_hers, place_of
from muarl.domain import Domain
from muarl.errors import ToolServerError
from muarl.gate import current_lane
from muarl.helper_thread import helper_thread
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.tools import ToolServer, ToolSession, sharing
from muarl.world import World

_PERIOD_S = 0.05
_AT_ONCE_S = 0.5
"""A tool that holds up the loop for this long is found."""
_IN_ALL_S = 3.0
"""Tools that do so for this long in all, a little at each call, are found as well."""
_LEAST_LOOKS = 3
"""Looks at one call in a row before it counts: a busy machine stops anybody for a moment."""
_GRACE_S = 2.0
"""What a call may take beyond its deadline, on a busy machine."""
_SHOWN_CHARS = 300
"""Of a call's arguments."""


class UnderWay(NamedTuple):
    """A call that was made and not answered so far.

    Attributes:
        call: The call.
        task_id: The task it is made for.
    """

    call: ToolCall
    task_id: str | None

    def __str__(self) -> str:
        """In words: `call cancel_order {"order_id": "B17"}`."""
        given = json.dumps(self.call.arguments, ensure_ascii=False, default=repr)
        cut = given if len(given) <= _SHOWN_CHARS else f"{given[:_SHOWN_CHARS]}…"
        return f"call {self.call.name} {cut}"


class CallWatch:
    """Looks whether the calls of a domain's tools come to an end; made by the thread of their loop.

    Args:
        patience_s: What a call may take at most, by the domain's own limits.
        on_found: Told once, from the thread that looks, that a tool holds up the loop, while it still
            does.
        on_stuck: Told once, likewise, that a call does not end: nothing moved for longer than any
            call may take.

    Attributes:
        failed: The last call whose server failed; None for none.
    """

    def __init__(
        self,
        patience_s: float,
        on_found: Callable[[str], None],
        on_stuck: Callable[[str], None],
    ) -> None:
        self.failed: UnderWay | None = None
        self._patience_s = patience_s
        self._on_found = on_found
        self._on_stuck = on_stuck
        self._found = ""
        self._under_way: dict[int, UnderWay] = {}
        self._moves = 0
        self._moved_at = time.monotonic()
        self._loop = threading.get_ident()

    @contextmanager
    def during(self, made: UnderWay) -> Iterator[None]:
        """While a call is under way.

        Raises:
            ToolServerError: A tool holds up the loop; or what the block raises.
        """
        self._move()
        number = self._moves
        self._under_way[number] = made
        try:
            yield
        except ToolServerError:
            self.failed = made
            raise
        finally:
            del self._under_way[number]
        self._move()

    def _move(self) -> None:
        """The loop began or ended a call."""
        self._moves += 1
        self._moved_at = time.monotonic()
        if self._found:
            raise ToolServerError(self._found)

    def look(self, ended: threading.Event) -> None:
        """Look again and again until the event is set, or a call is found not to end."""
        looks = 0
        before = self._moves
        in_all = 0.0
        while not ended.wait(_PERIOD_S):
            frame = held_by(sys._current_frames().get(self._loop))
            if self._is_stuck():
                self.failed = _made_in(frame) or next(iter(self._under_way.values()), None)
                self._on_stuck(_endless(frame or self._in_a_thread()))
                return
            if self._found or frame is None or before != self._moves:
                looks, before = 0, self._moves
                continue
            looks += 1
            in_all += _PERIOD_S if looks >= _LEAST_LOOKS else 0
            if looks * _PERIOD_S >= _AT_ONCE_S or in_all >= _IN_ALL_S:
                self.failed = _made_in(frame)
                self._found = _holding(frame)
                self._on_found(self._found)

    def _is_stuck(self) -> bool:
        waited = time.monotonic() - self._moved_at
        return bool(self._under_way) and waited > self._patience_s + _GRACE_S

    def _in_a_thread(self) -> FrameType | None:
        """A frame of a domain's code in another thread, where tools that are a plain `def` run."""
        frames = (f for thread, f in sys._current_frames().items() if thread != self._loop)
        return next((hers for frame in frames if (hers := _innermost(frame)) is not None), None)


def held_by(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of a domain's code that the MCP SDK has called, or None."""
    frame = above = _innermost(frame)
    while above is not None and not _is_of_sdk(above):
        above = above.f_back
    return None if above is None else frame


def _innermost(frame: FrameType | None) -> FrameType | None:
    return next(frames_of_hers(frame), None)


def _is_of_sdk(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("mcp.")


def _made_in(frame: FrameType | None) -> UnderWay | None:
    """The call in which a frame runs."""
    while frame is not None and frame.f_code is not _WatchedSession.call.__code__:
        frame = frame.f_back
    return None if frame is None else frame.f_locals.get("made")


def _holding(frame: FrameType) -> str:
    return (
        f"a tool holds up the event loop{place_of(frame)}: all dialogues wait, and no deadline can end "
        "the call. Await what takes long (`await anyio.sleep(...)`, an async client), or make the "
        "tool a plain `def`, which runs in a thread of its own"
    )


def _endless(frame: FrameType | None) -> str:
    return (
        f"the call does not end{place_of(frame)}, and tools.call_timeout_s cannot end it: that ends "
        "only what is awaited. Give what it waits for a deadline and its loops an end, or await what "
        "takes long (`await anyio.sleep(...)`, an async client) in an `async def`"
    )


@contextmanager
def watching(
    domain: Domain, on_found: Callable[[str], None], on_stuck: Callable[[str], None]
) -> Iterator[CallWatch]:
    """Watch a domain's calls for the length of the block.

    A tool that holds up the loop is an error of its server.

    Args:
        domain: The domain.
        on_found: As for `CallWatch`.
        on_stuck: Likewise.

    Raises:
        SpecError: Its server cannot be imported.
    """
    agent, user = domain.server, domain.user_server
    watch = CallWatch(_longest_call_s(domain), on_found, on_stuck)
    with helper_thread(watch.look, "muarl-calls"):
        domain.server = _WatchedServer(agent, watch)
        if user is not None:
            domain.user_server = _WatchedServer(user, watch)
        try:
            yield watch
        finally:
            domain.server = agent
            if user is not None:
                domain.user_server = user


def _longest_call_s(domain: Domain) -> float:
    servers = domain.spec.all_servers
    of_tools = (tool.call_timeout_s or 0 for server in servers for tool in server.limits.values())
    environment = domain.spec.environment
    its = environment.answer_s if environment is not None else 0
    return max((its, *(server.call_timeout_s for server in servers), *of_tools))


class _WatchedServer:
    def __init__(self, server: ToolServer, watch: CallWatch) -> None:
        self._server = server
        self._watch = watch

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _WatchedSession(session, self._watch)

    def shared(self) -> AbstractAsyncContextManager[None]:
        return sharing(self._server)


class _WatchedSession:
    def __init__(self, session: ToolSession, watch: CallWatch) -> None:
        self._session = session
        self._watch = watch

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        lane = current_lane.get()
        made = UnderWay(call, None if lane is None else str(lane))
        with self._watch.during(made):
            return await self._session.call(call)
