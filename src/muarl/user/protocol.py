"""The User protocol."""

from __future__ import annotations

from typing import Protocol

from muarl.record import UserReply


class User(Protocol):
    """One dialogue's user. Holds private state (goal, facts told, patience); never shared.

    A user sees only what the policy says to it: no tool calls, no tool results, no reasoning.
    Raise UserError when the simulator breaks its contract; PolicyError-like endpoint failures are
    raised as muarl.errors.EpisodeError subclasses too.
    """

    async def open(self) -> UserReply:
        """The first message."""
        ...

    async def reply(self, agent_text: str) -> UserReply:
        """Answer the policy's message. Only a reply with `stop` ends the dialogue (law L4)."""
        ...
