"""What requests of both forms have in common: settings that are the run's, tools, and what comes of them.

The policy is trained on what it sampled, as it was sampled: so what a request would change about that is
refused by name, and nobody believes in a `top_p` that was never applied. What changes nothing is let
pass, for clients send much of it unasked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from muarl.gateway.line import WireError
from muarl.messages import Message, ToolCall, ToolSpec

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True):
    """A request, in our own form.

    Attributes:
        model: Who is asked.
        messages: The conversation.
        tools: What may be called in it.
        max_tokens: Fewer than the run's cap; None: that.
        stream: The answer is to come as events.
        usage: Among them one of how many tokens it took.
    """

    model: str
    messages: list[Message]
    tools: list[ToolSpec]
    max_tokens: int | None = None
    stream: bool = False
    usage: bool = False


_FREE = {
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
}
"""Whose values say nothing about what is sampled."""

_CHANGE_NOTHING: Mapping[str, tuple[Any, ...]] = {
    "background": (False,),
    "conversation": (),
    "frequency_penalty": (0,),
    "include": ([], ["reasoning.encrypted_content"]),
    "logit_bias": ({},),
    "logprobs": (False,),
    "max_tool_calls": (),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "reasoning": ({},),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "seed": (),
    "stop": ("", []),
    "text": ({}, {"format": {"type": "text"}}),
    "tool_choice": ("auto",),
    "top_logprobs": (0,),
    "top_p": (1,),
    "truncation": ("disabled",),
    "verbosity": (),
}
"""Values that change nothing; any other is refused."""

_INSTEAD = {
    "conversation": "send the history, or previous_response_id",
    "parallel_tool_calls": "the policy decides how many calls it makes",
    "reasoning": "the run's model thinks as the run file says; leave it out",
    "reasoning_effort": "the run's model thinks as the run file says; leave it out",
    "response_format": "nothing constrains what is sampled; leave it out and read the text",
    "text": "nothing constrains what is sampled; leave it out and read the text",
    "tool_choice": "the policy decides what it calls; leave it out, or offer other tools",
    "truncation": "what does not fit ends the dialogue; send a shorter history",
}
_SHOWN = 80


def read_fields(body: bytes, known: Iterable[str], temperature: float) -> dict[str, Any]:
    """Those fields of a request that have to be read, where nothing else in it would be ignored.

    Args:
        body: JSON.
        known: Names of fields that are read.
        temperature: That the run samples at.

    Raises:
        WireError: It is no JSON object, or sets what is the run's.
    """
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the body is no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise WireError("the body must be a JSON object")
    wanted = set(known)
    for name, value in fields.items():
        if name not in wanted and value is not None:
            _refuse_what_would_be_ignored(name, value, temperature)
    return {name: value for name, value in fields.items() if name in wanted and value is not None}


def _refuse_what_would_be_ignored(name: str, value: Any, temperature: float) -> None:
    if name in _FREE:
        return
    shown = json.dumps(value)[:_SHOWN]
    if name == "temperature":
        if not _same(value, temperature):
            raise WireError(
                f"temperature: {shown} would be ignored, for the run samples at {temperature:g}: leave "
                "it out"
            )
    elif name not in _CHANGE_NOTHING:
        raise WireError(f"{name[:_SHOWN]}: there is no such parameter here; leave it out")
    elif not any(_same(value, harmless) for harmless in _CHANGE_NOTHING[name]):
        instead = _INSTEAD.get(name, "how the policy is sampled is the run's; leave it out")
        raise WireError(f"{name}: {shown} would be ignored: {instead}")


def _same(value: Any, harmless: Any) -> bool:
    if isinstance(value, dict):  # clients write out what they were not told, as null
        value = {name: one for name, one in value.items() if one is not None}
    return bool(value == harmless) and isinstance(value, bool) == isinstance(harmless, bool)


def converted(fields: Mapping[str, Any], form: type[T]) -> T:
    """Fields, checked.

    Raises:
        WireError: One of them has another form.
    """
    try:
        return msgspec.convert(fields, form)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WireError(f"the request cannot be read: {error}") from error


def read_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A call that comes back in a conversation."""
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return ToolCall(id=call_id, name=name, arguments=read)
    return ToolCall(id=call_id, name=name, error="arguments are no JSON object", raw=arguments)


def named(messages: Iterable[Message]) -> list[Message]:
    """Messages in which answers of tools bear the names of the tools that were called.

    Raises:
        WireError: There is none.
    """
    names: dict[str, str] = {}
    given = []
    for message in messages:
        names.update({call.id: call.name for call in message.tool_calls})
        if message.role == "tool" and message.name is None and message.tool_call_id in names:
            message = msgspec.structs.replace(message, name=names[message.tool_call_id])
        given.append(message)
    if not given:
        raise WireError("expected at least one message")
    return given


def as_offered(sent: Iterable[ToolSpec], offered: Iterable[ToolSpec]) -> list[ToolSpec]:
    """Tools that were sent; those of the domain's own as the domain describes them.

    A framework that passes a tool of the domain on leaves titles out of its schema, or closes its
    objects. The policy is shown what it would be shown by any other agent.
    """
    ours = {tool.name: tool for tool in offered}
    return [
        ours[tool.name] if tool.name in ours and _is_the_same(tool, ours[tool.name]) else tool
        for tool in sent
    ]


def _is_the_same(sent: ToolSpec, ours: ToolSpec) -> bool:
    return sent.description == ours.description and _bare(sent.parameters) == _bare(ours.parameters)


def _bare(schema: Any) -> Any:
    """A schema without what frameworks add or leave out."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bare: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("title", "$schema") or (name, value) in (
            ("additionalProperties", False),
            ("required", []),
        ):
            continue
        if name in ("properties", "$defs") and isinstance(value, dict):
            bare[name] = {key: _bare(part) for key, part in value.items()}
        elif name == "required" and isinstance(value, list):
            bare[name] = sorted(map(str, value))
        else:
            bare[name] = _bare(value)
    return bare


def readable(message: Message) -> tuple[str, list[ToolCall]]:
    """What a message of the policy says, and its calls.

    Calls that cannot be read stay in the text, as the policy wrote them: nothing is hidden.
    """
    text = message.content + "".join(call.raw for call in message.tool_calls if call.error)
    return text, [call for call in message.tool_calls if call.error is None]


def event(data: Any, kind: str | None = None) -> bytes:
    """A server-sent event."""
    head = b"" if kind is None else f"event: {kind}\n".encode()
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"
