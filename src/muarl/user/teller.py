"""A user who tells her whole goal and goes: what needs neither a model nor a script."""

from __future__ import annotations

from muarl.record import UserReply

_GO_ON = "That is all I know. Please go on."


class Teller:
    """One dialogue's user; she heeds nothing that is said to her.

    Args:
        goal: The task's, which she says as it stands.
        answers: Messages that she answers; at the next one she leaves.
    """

    def __init__(self, goal: str, answers: int) -> None:
        self._goal = goal
        self._answers = answers

    async def open(self) -> UserReply:
        return UserReply(self._goal, act="open")

    async def reply(self, agent_text: str) -> UserReply:
        del agent_text
        if self._answers == 0:
            return UserReply("", stop=True, act="stop")
        self._answers -= 1
        return UserReply(_GO_ON, act="unclear")
