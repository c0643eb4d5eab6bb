"""A user who is a person: she reads what the policy says, and answers it."""

from __future__ import annotations

from muarl.person import Person, command
from muarl.record import UserReply

COMMANDS = {
    "/bye": "say what follows, if anything, and end the dialogue: you are done",
    "/quit": "leave without a word",
    "/goal": "what you want, once more",
    "/help": "this",
}
"""What a person may command as the user, and what it does."""


class PersonUser:
    """One dialogue's user, played by a person; only she ends it (law L4).

    Args:
        person: Who plays.
        goal: What she wants and how she is, in words; she is told it at the start.
    """

    def __init__(self, person: Person, goal: str) -> None:
        self._person = person
        self._goal = goal

    async def open(self) -> UserReply:
        await self._person.hear("", self._goal)
        return await self._speak("open")

    async def reply(self, agent_text: str) -> UserReply:
        await self._person.hear("agent", agent_text)
        return await self._speak("")

    async def _speak(self, act: str) -> UserReply:
        while (line := await self._person.speak("you")) is not None:
            try:
                what, rest = command(line.strip(), COMMANDS)
            except ValueError as wrong:
                await self._person.hear("", str(wrong))
                continue
            if what == "/bye":
                return UserReply(rest, stop=True, act="stop")
            if what == "/quit":
                break
            if what == "/goal":
                await self._person.hear("", self._goal)
            elif what == "/help":
                await self._person.hear("", _help())
            elif rest:
                return UserReply(rest, act=act)
        return UserReply("", stop=True, act="abandon")


def _help() -> str:
    lines = (f"{name:<6} {what}" for name, what in COMMANDS.items())
    return "\n".join(["Anything that is no command is said to the agent.", *lines])
