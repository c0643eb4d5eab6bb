"""Chat JSONL read back: messages and tools of each line, every fault of it at its line.

What muarl exports comes back as it was; what others wrote in the form of OpenAI's chat completions comes
too. A file is foreign text: sizes are bounded, nothing in it is trusted to be of its type.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from muarl.errors import Problem, SpecError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.opened_file import opened_file

_SAID = 20
"""Lines that are complained of; nobody mends more at once."""


class _Function(msgspec.Struct):
    name: str
    arguments: Any = "{}"


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Part(msgspec.Struct):
    """A piece of a message; only text can be imitated."""

    type: Literal["text"]
    text: str


class _Said(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    weight: float = 1


class _ToolFunction(msgspec.Struct):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class _Tool(msgspec.Struct):
    function: _ToolFunction


class _Line(msgspec.Struct):
    messages: list[_Said]
    tools: list[_Tool] | str | None = None
    licence: str = "unstated"
    provenance: dict[str, Any] = {}


@dataclass(frozen=True)
class ChatDialogue:
    """One dialogue of a chat file.

    Attributes:
        messages: From the rules or the first word of the user to the agent's last.
        tools: Those that the agent had.
        licence: Under what terms it may be used.
        provenance: Where it came from, as the file says.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    licence: str = "unstated"
    provenance: dict[str, Any] = field(default_factory=dict)


def read_chat(path: Path) -> list[ChatDialogue]:
    """All dialogues of a file of JSON lines.

    Raises:
        SpecError: What is wrong, with its lines; or there is no dialogue.
    """
    found: list[ChatDialogue] = []
    problems: list[Problem] = []
    for number, text in enumerate(_lines(path), start=1):
        if not text.strip():
            continue
        try:
            found.append(_dialogue(text))
        except ValueError as wrong:
            problems.append(Problem(str(path), number, 1, str(wrong)))
            if len(problems) == _SAID:
                break
    if not (found or problems):
        problems.append(Problem(str(path), 0, 0, "there is no dialogue in it"))
    if problems:
        raise SpecError(problems)
    return found


def _lines(path: Path) -> Iterator[str]:
    try:
        with io.TextIOWrapper(opened_file(path), encoding="utf-8-sig") as file:
            yield from file
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SpecError([Problem(str(path), 0, 0, f"cannot be read: {why}")]) from error


def _dialogue(text: str) -> ChatDialogue:
    try:
        line = msgspec.json.decode(text.encode(), type=_Line)
        tools = line.tools
        if isinstance(tools, str):  # as tables hold them
            tools = msgspec.json.decode(tools.encode(), type=list[_Tool])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(
            f"expected a JSON object with `messages` (and `tools`) of chat completions: {error}"
        ) from error
    messages = tuple(_in_order(list(_messages(line.messages))))
    _refuse_disorder(messages)
    offered = [tool.function for tool in tools or ()]
    return ChatDialogue(
        messages,
        tuple(ToolSpec(one.name, one.description, one.parameters) for one in offered),
        line.licence,
        line.provenance,
    )


def _messages(said: Sequence[_Said]) -> Iterator[Message]:
    called: dict[str, str] = {}
    for number, one in enumerate(said):
        if one.role == "assistant" and one.weight != 1:
            raise ValueError(
                f"message {number} (assistant) has the weight {one.weight:g}; all that the agent says is "
                "imitated alike, so leave the dialogue out, or the weight"
            )
        calls = tuple(
            _call(call, f"call_{number}_{index}") for index, call in enumerate(one.tool_calls or ())
        )
        called |= {call.id: call.name for call in calls}
        name = one.name
        if one.role == "tool" and name is None:
            name = called.get(one.tool_call_id or "")
        yield Message(
            "system" if one.role == "developer" else one.role,
            _text(one.content),
            calls,
            one.tool_call_id,
            name,
            one.reasoning_content or "",
        )


def _text(content: str | Sequence[_Part] | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or ())


def _call(call: _Call, number: str) -> ToolCall:
    """A call; a text that is no object is kept as the call that could not be read."""
    if not call.function.name:
        raise ValueError("a call names no tool")
    arguments = call.function.arguments
    call_id = call.id or number
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return ToolCall(call_id, call.function.name, error="no JSON", raw=str(arguments))
    if not isinstance(arguments, dict) or json_problem(arguments):
        raise ValueError(f"the arguments of a call of {call.function.name!r} are no JSON object")
    return ToolCall(call_id, call.function.name, arguments)


def _in_order(messages: Sequence[Message]) -> Iterator[Message]:
    """The same, where answers come in the order of the calls they are of: templates know no other.

    Answers without an id are taken to be in order.
    """
    waiting: list[Message] = []
    calls: list[str] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            waiting.append(message)
            if calls and message.tool_call_id is not None and message.tool_call_id not in calls:
                raise ValueError(
                    f"message {number} (tool) answers {message.tool_call_id!r}, which the message before "
                    "does not call"
                )
            continue
        yield from _by_call(waiting, calls)
        waiting, calls = [], [call.id for call in message.tool_calls]
        yield message
    yield from _by_call(waiting, calls)


def _by_call(answers: Sequence[Message], calls: Sequence[str]) -> Sequence[Message]:
    ids = [answer.tool_call_id for answer in answers]
    if len(set(calls)) < len(calls) or not set(ids) <= set(calls):
        return answers
    return sorted(answers, key=lambda answer: calls.index(answer.tool_call_id or ""))


def _refuse_disorder(messages: Sequence[Message]) -> None:
    """The order that a dialogue has: rules, user, then agent and what answers it.

    Last comes the agent, or what answered a call that ended the dialogue.
    """
    rest = list(messages)
    if rest and rest[0].role == "system":
        rest.pop(0)
    if not rest or rest[0].role != "user":
        raise ValueError(
            "`messages` must begin with the user, or with the system and then the user"
        )
    open_calls: list[str] = []
    before = "user"
    for number, message in enumerate(rest[1:], start=len(messages) - len(rest) + 1):
        where = f"message {number} ({message.role})"
        if message.role == "system":
            raise ValueError(f"{where}: only the first message may be the system's")
        if message.role == "tool":
            if not open_calls:
                raise ValueError(f"{where} answers no call")
            open_calls.pop(0)
        elif open_calls:
            raise ValueError(f"{where}: the calls before it have {len(open_calls)} answers too few")
        elif message.role == before:
            raise ValueError(f"{where}: two messages of the {message.role} in a row")
        if message.role == "assistant":
            if not (message.content or message.tool_calls):
                raise ValueError(f"{where} has neither a text nor a call, and cannot be imitated")
            open_calls = [call.id for call in message.tool_calls]
        before = "user" if message.role == "tool" else message.role
    if open_calls or rest[-1].role == "user":
        raise ValueError("`messages` must end with the assistant, or with the answers to its calls")
