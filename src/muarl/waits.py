"""What a dialogue waits for: each wait has a name, a limit of how many at once, and a deadline."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType

import anyio
import msgspec

from muarl.errors import EpisodeTimeout
from muarl.gate import Gate


class Gates(msgspec.Struct, frozen=True):
    """What dialogues share.

    Attributes:
        messages: Policy messages being sampled.
        replies: User messages being written.
        calls: Tool calls being answered.
    """

    messages: Gate = msgspec.field(default_factory=Gate)
    replies: Gate = msgspec.field(default_factory=Gate)
    calls: Gate = msgspec.field(default_factory=Gate)


class Waits:
    """The waits of one dialogue, one at a time.

    Args:
        lane: Who shares turns at gates with whom: the dialogue's task.

    Attributes:
        now: What is being waited for, or was when something failed.
    """

    __slots__ = ("_current", "lane", "now")

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.now = ""
        self._current: Wait | None = None

    def on(self, what: str, which: str, gate: Gate, seconds: float = math.inf) -> Wait:
        """Wait for a place, then give what is awaited in the block so many seconds.

        Waiting for a place counts for the dialogue's deadline alone: how long the queue is says
        nothing about what stands behind the gate.

        Args:
            what: What is awaited, `policy message`.
            which: Which of them, `3`.
            gate: Where a place is needed.
            seconds: Left out where what is awaited has a named deadline of its own.

        Raises:
            EpisodeTimeout: On leaving the block: it took longer.
        """
        self._current = Wait(self, what, which, gate, seconds)
        return self._current

    @asynccontextmanager
    async def amid(self, what: str, which: str, gate: Gate) -> AsyncIterator[None]:
        """Wait for something else in the midst of a wait, whose seconds do not run meanwhile.

        Like a tool that a user calls while she replies: it has a deadline of its own.

        Args:
            what: What is awaited, `the user's call`.
            which: Which of them.
            gate: Where a place is needed, besides the one that is held.
        """
        around = self._current
        assert around is not None  # nobody is in the midst of no wait
        with around.paused():
            async with Wait(self, what, which, gate, math.inf):
                yield


class Wait:
    """One wait, as an `async with`."""

    # There is one for every message and call of thousands of dialogues: no generator, no more
    # scopes than deadlines.
    __slots__ = ("_name", "_place", "_scope", "_seconds", "_waits", "_what")

    def __init__(self, waits: Waits, what: str, which: str, gate: Gate, seconds: float) -> None:
        self._waits = waits
        self._what = what
        self._name = f"{what} {which}"
        self._place = gate.place(waits.lane)
        self._seconds = seconds
        self._scope: anyio.CancelScope | None = None

    async def __aenter__(self) -> None:
        self._waits.now = f"a place for {self._name}"
        await self._place.__aenter__()
        self._waits.now = self._name
        if self._seconds < math.inf:
            self._scope = anyio.CancelScope(deadline=anyio.current_time() + self._seconds)
            self._scope.__enter__()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Its seconds do not run within the block; once that went well, it is waited for again."""
        scope = self._scope
        left = math.inf if scope is None else scope.deadline - anyio.current_time()
        if scope is not None:
            scope.deadline = math.inf
        try:
            yield
        finally:
            if scope is not None:
                scope.deadline = anyio.current_time() + left
        self._waits.now = self._name

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        scope = self._scope
        try:
            if scope is not None:
                scope.__exit__(kind, error, trace)
        finally:
            await self._place.__aexit__(kind, error, trace)
        if scope is not None and scope.cancelled_caught:
            raise EpisodeTimeout(self._what, self._seconds) from None
