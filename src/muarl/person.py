"""A person who takes part in a dialogue: what she reads and writes, wherever she sits."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Protocol

from muarl.errors import did_you_mean
from muarl.json_values import json_problem
from muarl.messages import ToolCall, ToolSpec

AGENT_COMMANDS = {
    "/call": "call a tool: /call NAME {JSON}",
    "/tools": "the tools and their parameters",
    "/rules": "what the agent must follow",
    "/quit": "leave; nothing is scored",
    "/help": "this",
}
"""What a person may command as the agent, and what it does."""

USER_COMMANDS = {
    "/bye": "say what follows, if anything, and end the dialogue: you are done",
    "/quit": "leave without a word",
    "/do": "use a tool on your own device, where you have one: /do NAME {JSON}",
    "/tools": "the tools on your device",
    "/goal": "what you want, once more",
    "/help": "this",
}
"""What she may command as the user, and what it does."""


class Person(Protocol):
    """Somebody who reads and writes lines."""

    async def hear(self, who: str, text: str) -> None:
        """Let her read what somebody says; `who` is "" for what nobody says, such as help."""
        ...

    async def speak(self, who: str) -> str | None:
        """The next line that she writes, in the part of `who`; None once she has left."""
        ...


def command(
    line: str, known: Collection[str], others: Collection[str] = (), whose: str = ""
) -> tuple[str, str]:
    """What a line that she wrote commands, and the rest of it; ("", line) if it commands nothing.

    A command may be shortened as long as it is the only one; two slashes begin a text with one.

    Args:
        line: The line.
        known: Commands in her part.
        others: Those that only the other side of the dialogue has.
        whose: Who that is.

    Raises:
        ValueError: There is no such command.

    Example:
        >>> command("/q", {"/quit", "/help"})
        ('/quit', '')
        >>> command("//etc is full", {"/quit", "/help"})
        ('', '/etc is full')
    """
    if not line.startswith("/"):
        return "", line
    if line.startswith("//"):
        return "", line[1:]
    word, _, rest = line.partition(" ")
    meant = [name for name in known if name == word] or [n for n in known if n.startswith(word)]
    if len(meant) == 1:
        return meant[0], rest.strip()
    if word in others:
        mine = f"; there are {', '.join(known)}"
        raise ValueError(f"{word} is the {whose}'s command, and you are not the {whose}{mine}")
    hint = did_you_mean(word, known) or f"; there are {', '.join(known)}"
    raise ValueError(f"there is no {word}{hint} (a text that begins with / takes two of them)")


def call_of(text: str, call_id: str, how: str, tools: Sequence[ToolSpec]) -> ToolCall:
    """The call that she wrote behind a command: a tool's name, and arguments if it takes any.

    Whether there is such a tool, and takes such arguments, its server says.

    Args:
        text: What she wrote.
        call_id: Of the call.
        how: The command, for what she is told.
        tools: Likewise.

    Raises:
        ValueError: It cannot be read.

    Example:
        >>> call_of('find {"order_id": "W17"}', "call_1", "/call", [])
        ToolCall(id='call_1', name='find', arguments={'order_id': 'W17'}, error=None, raw='')
    """
    name, _, written = text.partition(" ")
    if not name:
        known = ", ".join(tool.name for tool in tools) or "none"
        raise ValueError(f"which tool? {how} NAME {{JSON}}; tools: {known}")
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
    return ToolCall(call_id, name, arguments)


def tools_in_words(tools: Sequence[ToolSpec]) -> str:
    """Each tool with its parameters, as a model is told of it."""
    return "\n".join(
        f"{tool.name} {json.dumps(tool.parameters, ensure_ascii=False)}\n  {tool.description}"
        for tool in tools
    )
