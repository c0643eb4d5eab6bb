"""What a user does on her own device while she replies: called, answered, recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from muarl.changed import Changed
from muarl.gate import Gate
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import UserReply
from muarl.spec.calls import Who
from muarl.tools import ToolSession
from muarl.waits import Waits
from muarl.world import Change

_NAME_CHARS = 80


@dataclass
class Acting:
    """A user's `Device` in one dialogue.

    Her calls wait at the same gate as the policy's. The seconds of her reply do not run while she
    waits for a tool: it has a deadline of its own.

    Attributes:
        session: With the server of her tools.
        changed: Watches the dialogue's world.
        waits: The dialogue's.
        gate: Where calls need a place.
        before: Told of every call before it is made.
    """

    session: ToolSession
    changed: Changed
    waits: Waits
    gate: Gate
    before: Callable[[Who, str], None]
    _calls: list[ToolCall] = field(default_factory=list)
    _results: list[ToolResult] = field(default_factory=list)
    _changes: list[Change] = field(default_factory=list)
    _per_call: list[int] = field(default_factory=list)
    _made: int = 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        self.before("user", call.name)
        which = f"{self._made}, {call.name[:_NAME_CHARS]!r}"
        self._made += 1
        with self.changed.by_call() as changes:
            async with self.waits.amid("the user's call", which, self.gate):
                result = await self.session.call(call)
        self._calls.append(call)
        self._results.append(result)
        self._changes += changes
        self._per_call.append(len(changes))
        return result

    def noted(self, reply: UserReply) -> UserReply:
        """Her reply with what she did since the last one."""
        if not self._calls:
            return reply
        noted = structs.replace(
            reply,
            calls=self._calls,
            results=self._results,
            changes=self._changes,
            per_call=self._per_call,
        )
        self._calls, self._results, self._changes, self._per_call = [], [], [], []
        return noted
