"""Who holds a key: one episode's line, and what is under way on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import anyio
import msgspec

from muarl.gateway.asked import as_offered
from muarl.gateway.line import Line, WireError
from muarl.messages import Message, ToolSpec

T = TypeVar("T")

MOST_AT_ONCE = 64
"""Requests of one episode that may be under way at once."""
_MOST_KEPT = 1024
"""Conversations that responses may go on from; older ones are forgotten."""


class Guest:
    """One episode at the gateway.

    Attributes:
        line: What its requests are answered from.
        conversations: By the ids of the responses that end them.
    """

    def __init__(self, line: Line, number: int) -> None:
        """Let it in.

        Args:
            line: What its requests are answered from.
            number: Its own, among all episodes at this gateway.
        """
        self.line = line
        self._ids = (f"{number}_{of_it}" for of_it in count(1))
        self.conversations: dict[str, list[Message]] = {}
        self._shown: tuple[bytes, tuple[ToolSpec, ...], list[ToolSpec]] = (b"[]", (), [])
        self._under_way: set[anyio.CancelScope] = set()
        self._begun: set[asyncio.Task[Any]] = set()
        self._has_left = False
        self._none_left = anyio.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While one request is answered; the end of the dialogue cancels it.

        Raises:
            WireError: Too many are, or the dialogue ended meanwhile.
        """
        if max(len(self._under_way), len(self._begun)) >= MOST_AT_ONCE:
            raise WireError(
                f"{MOST_AT_ONCE} requests of this episode are under way already; wait for one",
                code="too_many_requests",
                status=429,
                again=True,
            )
        scope = anyio.CancelScope()
        self._under_way.add(scope)
        try:
            with scope:
                yield
        finally:
            self._under_way.discard(scope)
            if self._has_left and not self._under_way:
                self._none_left.set()
        if scope.cancelled_caught:
            raise WireError("the dialogue is over", code="dialogue_over", status=410)

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that whoever hangs up meanwhile does not stop.

        A tool that was called may have changed the world already: what it did belongs into the record.
        """
        # No task group can hold it: an endpoint is opened by one task, and closed by another.
        task = asyncio.create_task(work)  # noqa: TID251
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    def new_id(self) -> str:
        """For an answer; no other episode's has it."""
        return next(self._ids)

    def shown(self, sent: list[ToolSpec]) -> list[ToolSpec]:
        """The tools that the policy is shown, of those that were sent: nearly always the same ones again."""
        written = msgspec.json.encode(sent)  # compared as values, `true` would be the number one
        before, offered, shown = self._shown
        if written != before or self.line.tools != offered:
            offered = self.line.tools
            shown = as_offered(sent, offered)
            self._shown = (written, offered, shown)
        return shown

    def keep(self, response: str, conversation: list[Message]) -> None:
        """Remember a conversation, for requests that go on from it."""
        self.conversations[response] = conversation
        if len(self.conversations) > _MOST_KEPT:
            del self.conversations[next(iter(self.conversations))]

    async def leave(self) -> None:
        """Cancel what is under way, and wait until it has ended; what was begun may end by itself."""
        self._has_left = True
        for scope in self._under_way:
            scope.cancel()
        if self._under_way:
            with anyio.CancelScope(shield=True):
                await self._none_left.wait()
        try:
            if self._begun:
                await asyncio.wait(self._begun)
        finally:  # the dialogue is being cut off
            for task in self._begun:
                task.cancel()
            if self._begun:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(self._begun)
