"""What a dialogue waits for: each wait has a name, a limit of how many at once, and a deadline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
        now: What is being waited for, or was when something failed; "" between waits.
    """

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self.now = ""

    @asynccontextmanager
    async def on(
        self, what: str, which: str, gate: Gate | None = None, seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Wait for a place, then give what is awaited in the block so many seconds.

        Args:
            what: What is awaited, `policy message`.
            which: Which of them, `3`.
            gate: Where a place is needed. Waiting for one counts for the dialogue's deadline alone:
                how long the queue is says nothing about what stands behind the gate.
            seconds: None where what is awaited has a named deadline of its own.

        Raises:
            EpisodeTimeout: It took longer.
        """
        name = f"{what} {which}".rstrip()
        self.now = f"a place for {name}"
        async with (gate or _OPEN).place(self._lane):
            self.now = name
            with anyio.move_on_after(seconds) as scope:
                yield
            if scope.cancelled_caught and seconds is not None:
                raise EpisodeTimeout(what, seconds)
        self.now = ""


_OPEN = Gate()
