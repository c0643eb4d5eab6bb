"""The form of responses: items read into messages, answers written whole or as typed events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal

import msgspec

from muarl.gateway.asked import Asked, converted, event, named, read_call, read_fields, readable
from muarl.gateway.line import WireError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.record import Turn


class _Part(msgspec.Struct):
    type: Literal["input_text", "output_text", "text", "reasoning_text", "summary_text"]
    text: str


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Said(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class _Called(msgspec.Struct):
    call_id: str
    name: str
    arguments: str


class _Answered(msgspec.Struct):
    call_id: str
    output: str | list[_Part]


class _Thought(msgspec.Struct):
    content: list[_Part] | None = None
    summary: list[_Part] | None = None


class _Request(msgspec.Struct):
    model: str
    input: str | list[dict[str, Any]] = ""
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[_Tool] = []
    max_output_tokens: int | None = None
    stream: bool = False
    stream_options: dict[str, Any] = {}


Known = Mapping[str, Sequence[Message]]
"""Conversations by the ids of the responses that end them, without instructions."""


def read_request(body: bytes, temperature: float, known: Known) -> tuple[Asked, list[Message]]:
    """Decode and check one request.

    Returns:
        What is asked; and the conversation without the instructions, which a later request with
        `previous_response_id` goes on from.

    Raises:
        WireError: It is no JSON, or says what we do not do.
    """
    request = converted(read_fields(body, _Request.__struct_fields__, temperature), _Request)
    if request.max_output_tokens is not None and request.max_output_tokens < 1:
        raise WireError(f"max_output_tokens: expected at least 1; got {request.max_output_tokens}")
    before: Sequence[Message] = ()
    if request.previous_response_id is not None:
        if request.previous_response_id not in known:
            raise WireError(
                f"no response {request.previous_response_id[:80]!r} was given in this episode",
                code="previous_response_not_found",
                status=404,
            )
        before = known[request.previous_response_id]
    told = [*before, *_read_input(request.input)]
    rules = [] if request.instructions is None else [Message("system", request.instructions)]
    asked = Asked(
        model=request.model,
        messages=named([*rules, *told]),
        tools=[ToolSpec(t.name, t.description or "", t.parameters or {}) for t in request.tools],
        max_tokens=request.max_output_tokens,
        stream=request.stream,
    )
    return asked, told


def _read_input(given: str | list[dict[str, Any]]) -> Iterator[Message]:
    """Messages: what the policy said, thought and called in a row is one of them."""
    if isinstance(given, str):
        if given:
            yield Message("user", given)
        return
    spoken = _Spoken()
    for number, item in enumerate(given):
        kind = item.get("type", "message")
        if kind == "reasoning":
            thought = converted(item, _Thought)
            if spoken.has_words:
                yield spoken.message()
            spoken.reasoning = _text(thought.content or thought.summary or [])
        elif kind == "function_call":
            called = converted(item, _Called)
            spoken.calls.append(read_call(called.call_id, called.name, called.arguments))
        elif kind == "message":
            said = converted(item, _Said)
            if said.role == "assistant":
                if spoken.has_words:
                    yield spoken.message()
                spoken.text = _text(said.content)
                continue
            if spoken:
                yield spoken.message()
            role: Literal["user", "system"] = "user" if said.role == "user" else "system"
            yield Message(role, _text(said.content))
        elif kind == "function_call_output":
            if spoken:
                yield spoken.message()
            answered = converted(item, _Answered)
            yield Message("tool", _text(answered.output), tool_call_id=answered.call_id)
        else:
            raise WireError(
                f"input[{number}]: no items of type {str(kind)[:80]!r} here; expected message, reasoning, "
                "function_call or function_call_output"
            )
    if spoken:
        yield spoken.message()


class _Spoken:
    """What the policy is said to have said, item by item."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.text: str | None = None
        self.reasoning = ""
        self.calls: list[ToolCall] = []

    @property
    def has_words(self) -> bool:
        return self.text is not None or bool(self.calls)

    def __bool__(self) -> bool:
        return self.has_words or bool(self.reasoning)

    def message(self) -> Message:
        """It as one message; the next one begins."""
        whole = Message(
            "assistant", self.text or "", tool_calls=tuple(self.calls), reasoning=self.reasoning
        )
        self._forget()
        return whole


def _text(content: str | list[_Part]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def response_id(answer_id: str) -> str:
    """What the response that gives an answer is called."""
    return f"resp_{answer_id}"


def answer(
    turn: Turn, asked: Asked, *, model: str, answer_id: str, temperature: float
) -> dict[str, Any]:
    """The whole answer."""
    sampled = turn.end - turn.start
    return _open(asked, model=model, answer_id=answer_id, temperature=temperature) | {
        "status": "completed",
        "output": _items(turn.message, answer_id),
        "usage": {
            "input_tokens": turn.start,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": sampled,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": turn.end,
        },
        "metadata": {"policy_version": str(turn.policy_version)},
    }


def events(
    turn: Turn, asked: Asked, *, model: str, answer_id: str, temperature: float
) -> Iterator[bytes]:
    """The answer as events, in the order in which they would come from a model that is slow."""
    numbers = count()

    def told(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    begun = _open(asked, model=model, answer_id=answer_id, temperature=temperature)
    yield told("response.created", response=begun)
    yield told("response.in_progress", response=begun)
    for index, item in enumerate(_items(turn.message, answer_id)):
        where = {"item_id": item["id"], "output_index": index}
        called = item["type"] == "function_call"
        empty: dict[str, Any] = {"arguments": ""} if called else {"content": []}
        new = item | empty | {"status": "in_progress"}
        yield told("response.output_item.added", output_index=index, item=new)
        if called:
            made = {"arguments": item["arguments"], "name": item["name"]}
            delta = item["arguments"]
            yield told("response.function_call_arguments.delta", delta=delta, **where)
            yield told("response.function_call_arguments.done", **made, **where)
        else:
            where["content_index"] = 0
            (part,) = item["content"]
            text, kind = part["text"], part["type"]
            yield told("response.content_part.added", part=part | {"text": ""}, **where)
            more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
            yield told(f"response.{kind}.delta", delta=text, **more, **where)
            yield told(f"response.{kind}.done", text=text, **more, **where)
            yield told("response.content_part.done", part=part, **where)
        yield told("response.output_item.done", output_index=index, item=item)
    whole = answer(turn, asked, model=model, answer_id=answer_id, temperature=temperature)
    yield told("response.completed", response=whole)


def _open(asked: Asked, *, model: str, answer_id: str, temperature: float) -> dict[str, Any]:
    return {
        "id": response_id(answer_id),
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": asked.max_tokens,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": temperature,
        "tool_choice": "auto",
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in asked.tools
        ],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
    }


def _items(message: Message, answer_id: str) -> list[dict[str, Any]]:
    text, calls = readable(message)
    items: list[dict[str, Any]] = []
    if message.reasoning:
        thought = {"type": "reasoning_text", "text": message.reasoning}
        items.append(
            {"type": "reasoning", "id": f"rs_{answer_id}", "summary": [], "content": [thought]}
        )
    if text or not calls:
        said = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        items.append(
            {"type": "message", "id": f"msg_{answer_id}", "role": "assistant", "content": [said]}
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{answer_id}_{place}",
            "call_id": call.id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
        }
        for place, call in enumerate(calls)
    ]
    return [item | {"status": "completed"} for item in items]
