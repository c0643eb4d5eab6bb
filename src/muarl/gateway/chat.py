"""The form of chat completions: requests read strictly, answers written whole or as events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from muarl.gateway.asked import Asked, converted, event, named, read_call, read_fields, readable
from muarl.gateway.line import WireError
from muarl.messages import Message, Role, ToolSpec
from muarl.record import Turn


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    function: _Function
    type: Literal["function"] = "function"
    index: int | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: list[None] | None = None


class _ToolFunction(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    function: _ToolFunction
    type: Literal["function"] = "function"


class _StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class _Request(msgspec.Struct):
    model: str
    messages: list[_Message]
    tools: list[_Tool] = []
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()


def read_request(body: bytes, temperature: float) -> Asked:
    """Decode and check one request.

    Raises:
        WireError: It is no JSON, or says what we do not do.
    """
    request = converted(read_fields(body, _Request.__struct_fields__, temperature), _Request)
    for name in ("max_tokens", "max_completion_tokens"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise WireError(f"{name}: expected at least 1; got {value}")
    messages = [
        _read_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)
    ]
    return Asked(
        model=request.model,
        messages=named(messages),
        tools=[_read_tool(tool.function) for tool in request.tools],
        max_tokens=request.max_completion_tokens or request.max_tokens,
        stream=request.stream,
        usage=bool(request.stream_options.include_usage),
    )


def _read_tool(tool: _ToolFunction) -> ToolSpec:
    return ToolSpec(tool.name, tool.description or "", tool.parameters or {})


def _read_message(message: _Message, where: str) -> Message:
    role: Role = "system" if message.role == "developer" else message.role
    if message.tool_calls and role != "assistant":
        raise WireError(f"{where}.tool_calls: only an assistant message has calls")
    if (message.tool_call_id is not None) != (role == "tool"):
        raise WireError(f"{where}.tool_call_id: goes with tool messages, and they with it")
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text for part in content)
    return Message(
        role=role,
        content=content or "",
        tool_calls=tuple(
            read_call(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ),
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=message.reasoning_content or "",
    )


def answer(turn: Turn, *, model: str, answer_id: str) -> dict[str, Any]:
    """The whole answer. `system_fingerprint` names the version of the weights."""
    said, finish = _said(turn.message)
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish}
    whole = _head(turn, "chat.completion", model=model, answer_id=answer_id)
    return whole | {"choices": [choice], "usage": _usage(turn)}


def events(turn: Turn, *, model: str, answer_id: str, usage: bool) -> Iterator[bytes]:
    """The answer as events: the message, why it ended, and how many tokens it took."""
    said, finish = _said(turn.message)
    for index, call in enumerate(said.get("tool_calls", ())):
        call["index"] = index
    head = _head(turn, "chat.completion.chunk", model=model, answer_id=answer_id)
    for delta, why in ((said, None), ({}, finish)):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": why}
        yield event(head | {"choices": [choice]})
    if usage:
        yield event(head | {"choices": [], "usage": _usage(turn)})
    yield b"data: [DONE]\n\n"


def _head(turn: Turn, kind: str, *, model: str, answer_id: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer_id}",
        "object": kind,
        "created": 0,
        "model": model,
        "system_fingerprint": f"policy-version-{turn.policy_version}",
    }


def _said(message: Message) -> tuple[dict[str, Any], str]:
    content, calls = readable(message)
    said: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    if calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ]
    return said, "tool_calls" if calls else "stop"


def _usage(turn: Turn) -> dict[str, int]:
    return {
        "prompt_tokens": turn.start,
        "completion_tokens": turn.end - turn.start,
        "total_tokens": turn.end,
    }
