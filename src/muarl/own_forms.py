"""What an agent's own loop hands over, looked at before anything is done with it.

It is recorded as it is, and a record that no reader takes is a run that nobody can go on with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio.lowlevel

from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolSpec


async def checked(check: Callable[..., None], *given: object) -> None:
    """Look at something; where it is wrong, let others have their turn first.

    An agent may try the same again for ever, and nobody else would have one.

    Raises:
        TypeError: It has another form.
        ValueError: Or what nobody can do anything with.
    """
    try:
        check(*given)
    except (TypeError, ValueError):
        await anyio.lowlevel.checkpoint()
        raise


def check_asked(
    messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
) -> None:
    """Look at what `generate` is asked.

    Raises:
        TypeError: A message or a tool is none, or `max_tokens` no number.
        ValueError: There is no message, or no room for one.
    """
    check_each("generate: messages", messages, Message)
    check_each("generate: tools", tools, ToolSpec)
    if not messages:
        raise ValueError(
            "generate: expected at least one message, such as those of context.opening"
        )
    if max_tokens is not None:
        if not isinstance(max_tokens, int):
            raise TypeError(
                f"generate: max_tokens is a number of tokens, got {kind_of(max_tokens)}"
            )
        if max_tokens < 1:
            raise ValueError(f"generate: max_tokens: expected at least 1, got {max_tokens}")


def check_text(what: str, text: object) -> None:
    """Look at words, or a name.

    Raises:
        TypeError: It is no text.
        ValueError: It is none that can be written down.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, got {kind_of(text)}")
    if problem := json_problem(text):
        raise ValueError(f"{what}: {problem}")


def check_call(call: object, arguments: object) -> None:
    """Look at what `call_tool` is given. Values among the arguments are looked at as the call is made.

    Raises:
        TypeError: It is no call, or the arguments are no mapping.
        ValueError: The tool's name cannot be written down.
    """
    if not isinstance(call, ToolCall):
        check_text("call_tool: what is called, if it is no ToolCall,", call)
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(
                f"call_tool: the arguments of {call!r} must be a mapping, got {kind_of(arguments)}"
            )
    elif arguments is not None:
        raise TypeError("call_tool: a ToolCall has its arguments itself; give it alone, or a name")


def check_each(what: str, given: Sequence[Any], form: type) -> None:
    """Look at a list and its members.

    Raises:
        TypeError: It is none, or one has another form.
    """
    if not isinstance(given, Sequence):
        raise TypeError(f"{what} must be a list, got {kind_of(given)}")
    for number, one in enumerate(given):
        if not isinstance(one, form):
            raise TypeError(f"{what}[{number}] must be a muarl {form.__name__}, got {kind_of(one)}")


def kind_of(value: object) -> str:
    """What was given, in words."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
