"""A user who is a person: she reads what the policy says, answers it, and uses her own device."""

from __future__ import annotations

from muarl.person import AGENT_COMMANDS, USER_COMMANDS, Person, call_of, command, tools_in_words
from muarl.record import UserReply
from muarl.user.protocol import Device


class PersonUser:
    """One dialogue's user, played by a person; only she ends it (law L4).

    Args:
        person: Who plays.
        goal: What she wants and how she is, in words; she is told it at the start.
    """

    def __init__(self, person: Person, goal: str) -> None:
        self._person = person
        self._goal = goal
        self._device: Device | None = None
        self._calls = 0

    def take(self, device: Device) -> None:
        self._device = device

    async def open(self) -> UserReply:
        await self._person.hear("", self._goal)
        return await self._speak("open")

    async def reply(self, agent_text: str) -> UserReply:
        await self._person.hear("agent", agent_text)
        return await self._speak("")

    async def _speak(self, act: str) -> UserReply:
        while (line := await self._person.speak("you")) is not None:
            try:
                what, rest = command(line.strip(), USER_COMMANDS, AGENT_COMMANDS, "agent")
                if what == "/bye":
                    return UserReply(rest, stop=True, act="stop")
                if what == "/quit":
                    break
                if rest and not what:
                    return UserReply(rest, act=act)
                if what:
                    await self._person.hear("", await self._carried_out(what, rest))
            except ValueError as wrong:
                await self._person.hear("", str(wrong))
        return UserReply("", stop=True, act="abandon")

    async def _carried_out(self, what: str, rest: str) -> str:
        """What a command says that neither speaks nor ends.

        Raises:
            ValueError: It cannot be carried out.
        """
        if what == "/goal":
            return self._goal
        if what == "/help":
            return _help()
        if self._device is None:
            raise ValueError("there is no device of yours in this domain: you can only talk")
        if what == "/tools":
            return tools_in_words(self._device.tools)
        self._calls += 1
        call = call_of(rest, f"call_{self._calls}", "/do", self._device.tools)
        return (await self._device.call(call)).as_message().content


def _help() -> str:
    lines = (f"{name:<7} {what}" for name, what in USER_COMMANDS.items())
    return "\n".join(["Anything that is no command is said to the agent.", *lines])
