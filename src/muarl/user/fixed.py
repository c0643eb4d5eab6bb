"""A user who says what the task has her say, in order, and hears nothing.

The agent decides when it is done with a message: with the next one that it sends her without calls. After
her last message that ends the dialogue.
"""

from __future__ import annotations

from collections.abc import Sequence

from muarl.record import UserReply
from muarl.spec.task import TurnSpec

_GO_ON = "That is all I know. Please go on."


def teller(goal: str, answers: int) -> FixedUser:
    """A user who tells her whole goal and goes: what needs neither a model, a script nor turns.

    Args:
        goal: The task's, which she says as it stands.
        answers: Messages that she answers; at the next one she leaves.
    """
    return FixedUser([TurnSpec(says=goal), *[TurnSpec(says=_GO_ON)] * answers])


class FixedUser:
    """A `User` of fixed messages.

    Args:
        turns: What she says, at least one message.
    """

    def __init__(self, turns: Sequence[TurnSpec]) -> None:
        self._left = iter(turns)

    async def open(self) -> UserReply:
        """The first message."""
        return self._next("open")

    async def reply(self, agent_text: str) -> UserReply:
        """The next message, or the end."""
        del agent_text
        return self._next("next")

    def _next(self, act: str) -> UserReply:
        turn = next(self._left, None)
        if turn is None:
            return UserReply("", stop=True, act="stop")
        return UserReply(turn.says, act=act, shows=tuple(turn.shows))
