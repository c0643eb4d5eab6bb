"""The chat-completions wire form: requests read strictly, completions written.

What a request may say is closed: a parameter that would be ignored is refused by name, so that
nobody believes in a `top_p` that was never applied.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from muarl.messages import Message, Role, ToolCall, ToolSpec
from muarl.policy import Generation


class BadRequest(Exception):
    """A request that cannot be answered.

    Attributes:
        status: HTTP status.
        code: Machine-readable reason.
    """

    def __init__(self, message: str, *, code: str = "invalid_request", status: int = 400) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


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


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    refusal: None = None


class _ToolFunction(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    function: _ToolFunction
    type: Literal["function"] = "function"


class ChatRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What a client may ask for.

    `n`, `stream`, `top_p` and `tool_choice` are known only in the form that changes nothing, and
    `user` changes nothing anywhere.
    """

    model: str
    messages: list[_Message]
    tools: list[_Tool] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    user: str | None = None
    n: Literal[1] | None = None
    stream: bool | None = None
    top_p: float | None = None
    tool_choice: Literal["auto"] | None = None


_decoder = msgspec.json.Decoder(ChatRequest)


def read_request(body: bytes) -> ChatRequest:
    """Decode and check one request.

    Raises:
        BadRequest: It is no JSON, or says what we do not do.
    """
    try:
        request = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no chat request we can answer: {error}") from error
    if request.stream:
        raise BadRequest("stream: only whole completions are given; send false")
    if request.top_p not in (None, 1):
        raise BadRequest(f"top_p: nothing but 1 is sampled from; got {request.top_p}")
    if request.temperature is not None and not 0 <= request.temperature <= 10:
        raise BadRequest(f"temperature: expected 0 to 10; got {request.temperature}")
    if not request.messages:
        raise BadRequest("messages: expected at least one")
    for name in ("max_tokens", "max_completion_tokens"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise BadRequest(f"{name}: expected at least 1; got {value}")
    return request


def read_messages(request: ChatRequest) -> list[Message]:
    """The conversation in our own form."""
    return [_read_message(message, f"messages[{i}]") for i, message in enumerate(request.messages)]


def read_tools(request: ChatRequest) -> list[ToolSpec]:
    """The tools in our own form."""
    return [
        ToolSpec(tool.function.name, tool.function.description, tool.function.parameters)
        for tool in request.tools or ()
    ]


def _read_message(message: _Message, where: str) -> Message:
    role: Role = "system" if message.role == "developer" else message.role
    if message.tool_calls and role != "assistant":
        raise BadRequest(f"{where}.tool_calls: only an assistant message has calls")
    if (message.tool_call_id is not None) != (role == "tool"):
        raise BadRequest(f"{where}.tool_call_id: goes with tool messages, and they with it")
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text for part in content)
    return Message(
        role=role,
        content=content or "",
        tool_calls=tuple(_read_call(call) for call in message.tool_calls or ()),
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=message.reasoning_content or "",
    )


def _read_call(call: _Call) -> ToolCall:
    name, text = call.function.name, call.function.arguments
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return ToolCall(id=call.id, name=name, arguments=arguments)
    return ToolCall(id=call.id, name=name, error="arguments are no JSON object", raw=text)


def completion(
    message: Message, generation: Generation, *, model: str, number: int, prompt_tokens: int
) -> dict[str, Any]:
    """The answer to a request.

    Calls that cannot be read stay in the content, as the policy wrote them: nothing is hidden.
    `system_fingerprint` names the version of the weights.
    """
    readable = [call for call in message.tool_calls if call.error is None]
    content = message.content + "".join(call.raw for call in message.tool_calls if call.error)
    said: dict[str, Any] = {"role": "assistant", "content": content or (None if readable else "")}
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    if readable:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in readable
        ]
    stopped = "tool_calls" if readable else "stop"
    sampled = len(generation.token_ids)
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "system_fingerprint": f"policy-version-{generation.policy_version}",
        "choices": [
            {
                "index": 0,
                "message": said,
                "finish_reason": stopped if generation.finish_reason == "stop" else "length",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": sampled,
            "total_tokens": prompt_tokens + sampled,
        },
    }
