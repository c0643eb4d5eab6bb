"""A policy that is a person: she reads what a model would, and writes messages and tool calls."""

from __future__ import annotations

from muarl.errors import PolicyError
from muarl.messages import Message, ToolSpec
from muarl.person import AGENT_COMMANDS, USER_COMMANDS, Person, call_of, command, tools_in_words
from muarl.policy.protocol import GenerateRequest, Generation
from muarl.policy.spoken import as_sampled
from muarl.render import Renderer


class PersonPolicy:
    """One dialogue's agent, played by a person.

    Args:
        person: Who plays.
        renderer: Of the dialogue.

    Attributes:
        left: She left before the dialogue was over.
    """

    policy_version = 0

    def __init__(self, person: Person, renderer: Renderer) -> None:
        self._person = person
        self._renderer = renderer
        self._tools: tuple[ToolSpec, ...] = ()
        self._read = 0
        self._calls = 0
        self.left = False

    async def generate(self, request: GenerateRequest) -> Generation:
        """Let her read what is new, tools that she is shown first, and write one message.

        Raises:
            PolicyError: She has left; only the user ends a dialogue (law L4).
        """
        if request.tools != self._tools:
            self._tools = request.tools
            await self._person.hear("", tools_in_words(self._tools))
        for message in request.history[self._read :]:
            if message.role != "assistant":
                await self._person.hear(message.name or message.role, message.content)
        self._read = len(request.history)
        first = request.history[0]
        said = await self._write(first.content if first.role == "system" else "")
        if said is None:
            self.left = True
            raise PolicyError("the person who plays the agent has left")
        return as_sampled(said, self._renderer, request)

    async def _write(self, rules: str) -> Message | None:
        while (line := await self._person.speak("you")) is not None:
            try:
                what, rest = command(line.strip(), AGENT_COMMANDS, USER_COMMANDS, "user")
                if what == "/call":
                    return self._call(rest)
            except ValueError as wrong:
                await self._person.hear("", str(wrong))
                continue
            if what == "/quit":
                return None
            if what:
                told = {
                    "/tools": lambda: tools_in_words(self._tools),
                    "/rules": lambda: rules,
                    "/help": _help,
                }[what]
                await self._person.hear("", told())
            elif rest:
                return Message("assistant", rest)
        return None

    def _call(self, text: str) -> Message:
        self._calls += 1
        call = call_of(text, f"call_{self._calls}", "/call", self._tools)
        return Message("assistant", "", tool_calls=(call,))


def _help() -> str:
    lines = (f"{name:<6} {what}" for name, what in AGENT_COMMANDS.items())
    return "\n".join(["Anything that is no command is said to the user.", *lines])
