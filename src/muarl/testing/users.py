"""A user that says what a test tells her to."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.lowlevel

from muarl.errors import UserError
from muarl.record import UserReply


class ScriptedUserStub:
    """Opens with the first reply and goes through the rest, whatever she hears.

    Args:
        replies: Strings, or replies where one is to stop the dialogue.

    Attributes:
        heard: What the policy said to her, in order.

    Example:
        >>> user = ScriptedUserStub(["Cancel W1, please.", UserReply("Thanks.", stop=True)])
    """

    def __init__(self, replies: Sequence[str | UserReply]) -> None:
        self._replies = [r if isinstance(r, UserReply) else UserReply(r) for r in replies]
        self._said = 0
        self.heard: list[str] = []

    async def open(self) -> UserReply:
        return await self._next()

    async def reply(self, agent_text: str) -> UserReply:
        self.heard.append(agent_text)
        return await self._next()

    async def _next(self) -> UserReply:
        await anyio.lowlevel.checkpoint()
        if self._said >= len(self._replies):
            raise UserError(f"the script has {len(self._replies)} replies, and one more was asked")
        self._said += 1
        return self._replies[self._said - 1]
