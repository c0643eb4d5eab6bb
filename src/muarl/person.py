"""A person who takes part in a dialogue: what she reads and writes, wherever she sits."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

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


_SHOWN_DEPTH = 8
"""Of values within the arguments of a call."""


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
    """Each tool with its parameters, in the form in which `call_of` takes them, and what it is for.

    Example:
        >>> number = {"type": "integer", "description": "From 1."}
        >>> schema = {"type": "object", "properties": {"n": number}}
        >>> print(tools_in_words([ToolSpec("find", "Looks.", schema)]))
        find {"n"?: integer}
          Looks.
          n: From 1.
    """
    return "\n".join(line for tool in tools for line in _tool_in_words(tool))


def _tool_in_words(tool: ToolSpec) -> Iterator[str]:
    yield f"{tool.name} {_type_in_words(tool.parameters, tool.parameters)}"
    yield from (f"  {line}" for line in tool.description.splitlines())
    for name, schema in _properties(tool.parameters).items():
        said = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(said, str):
            yield f"  {name}: {said}"


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    given = schema.get("properties")
    return given if isinstance(given, dict) else {}


def _type_in_words(schema: Any, whole: Mapping[str, Any], depth: int = 0) -> str:
    """What values a JSON Schema takes; a server may send any, so what is odd is `any`.

    Args:
        schema: The schema.
        whole: That of the tool, where definitions are.
        depth: Of the value in the arguments.
    """
    if not isinstance(schema, dict) or depth > _SHOWN_DEPTH:
        return "any"
    if isinstance(referred := schema.get("$ref"), str):
        kinds, _, name = referred.removeprefix("#/").rpartition("/")
        definitions = whole.get(kinds)
        meant = definitions.get(name) if isinstance(definitions, dict) else None
        return _type_in_words(meant, whole, depth + 1)
    if "const" in schema or isinstance(schema.get("enum"), list):
        values = schema.get("enum") or [schema.get("const")]
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    for several in ("anyOf", "oneOf"):
        if isinstance(ways := schema.get(several), list) and ways:
            return " | ".join(_type_in_words(way, whole, depth + 1) for way in ways)
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"[{_type_in_words(schema.get('items'), whole, depth + 1)}]"
    if kind == "object" and (_properties(schema) or depth == 0):
        needed = schema.get("required")
        fields = (
            f"{json.dumps(name, ensure_ascii=False)}"
            f"{'' if isinstance(needed, list) and name in needed else '?'}: "
            f"{_type_in_words(part, whole, depth + 1)}"
            for name, part in _properties(schema).items()
        )
        return f"{{{', '.join(fields)}}}"
    return kind if isinstance(kind, str) else "any"
