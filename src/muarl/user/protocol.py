"""The User protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import UserReply


class Device(Protocol):
    """What a user can do herself: a tool session of her own, open as long as the dialogue.

    What she calls, what is answered and what it changes is recorded with the reply that she is
    making; the policy learns of it only what she says.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Her tools, in their server's order."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call. Unknown tools, bad arguments and tool errors are results, not exceptions.

        Raises:
            EpisodeError: The server died or hung; not for her to catch.
        """
        ...


@runtime_checkable
class ActingUser(Protocol):
    """A user that knows how to use a device. Who is none only talks, where there is one."""

    def take(self, device: Device) -> None:
        """Have a device; called once, before she opens."""
        ...


def hand_over(user: User, device: Device) -> None:
    """Give a user her device, if she knows how to use one."""
    if isinstance(user, ActingUser):
        user.take(device)


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
