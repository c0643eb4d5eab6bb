"""What a user does on her own device while she replies: called, answered, recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import structs

from muarl.gate import Gate
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import UserReply
from muarl.spec.calls import Who
from muarl.tools import ToolSession
from muarl.waits import Waits
from muarl.world import World, diff

_NAME_CHARS = 80


@dataclass
class Acting:
    """A user's `Device` in one dialogue.

    Her calls wait at the same gate as the policy's. The seconds of her reply do not run while she
    waits for a tool: it has a deadline of its own.

    Attributes:
        session: With the server of her tools.
        world: The dialogue's.
        waits: The dialogue's.
        gate: Where calls need a place.
        before: Told of every call before it is made.
    """

    session: ToolSession
    world: World
    waits: Waits
    gate: Gate
    before: Callable[[Who, str], None]
    _calls: list[ToolCall] = field(default_factory=list)
    _results: list[ToolResult] = field(default_factory=list)
    _was: World | None = None
    _made: int = 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        if self._was is None:
            self._was = self.world.fork()
        self.before("user", call.name)
        which = f"{self._made}, {call.name[:_NAME_CHARS]!r}"
        self._made += 1
        async with self.waits.amid("the user's call", which, self.gate):
            result = await self.session.call(call)
        self._calls.append(call)
        self._results.append(result)
        return result

    def noted(self, reply: UserReply) -> UserReply:
        """Her reply with what she did since the last one."""
        if self._was is None:
            return reply
        changes = diff(self._was, self.world)
        noted = structs.replace(reply, calls=self._calls, results=self._results, changes=changes)
        self._calls, self._results, self._was = [], [], None
        return noted
