"""A policy that is a person: she reads what a model would, and writes messages and tool calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

from muarl.errors import PolicyError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.person import Person, command
from muarl.policy.protocol import GenerateRequest, Generation
from muarl.policy.spoken import as_sampled
from muarl.render import Renderer

COMMANDS = {
    "/call": "call a tool: /call NAME {JSON}",
    "/tools": "the tools and their parameters",
    "/rules": "what the agent must follow",
    "/quit": "leave; nothing is scored",
    "/help": "this",
}
"""What a person may command as the agent, and what it does."""


class PersonPolicy:
    """One dialogue's agent, played by a person.

    Args:
        person: Who plays.
        renderer: Of the dialogue.
        tools: Those that she may call.

    Attributes:
        left: She left before the dialogue was over.
    """

    policy_version = 0

    def __init__(self, person: Person, renderer: Renderer, tools: Sequence[ToolSpec]) -> None:
        self._person = person
        self._renderer = renderer
        self._tools = tools
        self._read = 0
        self._calls = 0
        self.left = False

    async def generate(self, request: GenerateRequest) -> Generation:
        """Let her read what is new, and write one message.

        Raises:
            PolicyError: She has left; only the user ends a dialogue (law L4).
        """
        for message in request.history[self._read :]:
            if message.role != "assistant":
                await self._person.hear(message.name or message.role, message.content)
        self._read = len(request.history)
        said = await self._write(request.history[0].content)
        if said is None:
            self.left = True
            raise PolicyError("the person who plays the agent has left")
        return as_sampled(said, self._renderer, request)

    async def _write(self, rules: str) -> Message | None:
        while (line := await self._person.speak("you")) is not None:
            try:
                what, rest = command(line.strip(), COMMANDS)
                if what == "/call":
                    return self._call(rest)
            except ValueError as wrong:
                await self._person.hear("", str(wrong))
                continue
            if what == "/quit":
                return None
            if what:
                told = {"/tools": self.tools_in_words, "/rules": lambda: rules, "/help": _help}[
                    what
                ]
                await self._person.hear("", told())
            elif rest:
                return Message("assistant", rest)
        return None

    def _call(self, text: str) -> Message:
        """The message that makes a call.

        Raises:
            ValueError: It cannot be read.
        """
        name, _, written = text.partition(" ")
        if not name:
            known = ", ".join(tool.name for tool in self._tools) or "none"
            raise ValueError(f"which tool? /call NAME {{JSON}}; tools: {known}")
        try:
            arguments = json.loads(written or "{}")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are no JSON: {error}") from error
        problem = (
            json_problem(arguments)
            if isinstance(arguments, dict)
            else 'they must be a JSON object, such as {"order_id": "W17"}'
        )
        if problem:
            raise ValueError(f"wrong arguments: {problem}")
        self._calls += 1
        call = ToolCall(f"call_{self._calls}", name, arguments)
        return Message("assistant", "", tool_calls=(call,))

    def tools_in_words(self) -> str:
        """Each tool with its parameters, as the model is told of it."""
        return "\n".join(
            f"{tool.name} {json.dumps(tool.parameters, ensure_ascii=False)}\n  {tool.description}"
            for tool in self._tools
        )


def _help() -> str:
    lines = (f"{name:<6} {what}" for name, what in COMMANDS.items())
    return "\n".join(["Anything that is no command is said to the user.", *lines])
