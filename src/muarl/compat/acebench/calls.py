"""Calls in a model's text, `[send_message(sender_name='Eve', ...), ...]`: parsed, never evaluated.

Upstream parses the text, writes each call anew and evaluates that; see `muarl.compat.python_calls`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from muarl.compat.python_calls import NotCalls, arguments_of, expression, name_of

_BRACKETED = re.compile(r"\[.*\]")


class Call(msgspec.Struct, frozen=True):
    """One call as it would be evaluated.

    Attributes:
        name: What is called; dotted if it is an attribute, empty if it is an expression.
        arguments: By keyword.
        undefined: A name that its evaluation stumbles over before anything runs, or none.
    """

    name: str
    arguments: dict[str, Any]
    undefined: str | None = None


def addressed_to_tools(text: str) -> bool:
    """Whether a message of the agent goes to the tools and not to the user, where there is one."""
    if not _BRACKETED.search(text):
        return False
    try:
        parsed(text)
    except NotCalls:
        return False
    return True


def parsed(text: str) -> list[Call]:
    """The calls of a text, in order. A text that is an expression but no call has none.

    Raises:
        NotCalls: The text is no expression, or holds what upstream does not read.

    Example:
        >>> [call.name for call in parsed("[turn_on_wifi(), get_products(merchant_name='Heytea')]")]
        ['turn_on_wifi', 'get_products']
        >>> parsed("[delete_message(message_id=+3)]")[0].arguments
        {'message_id': -3}
    """
    if not text:
        raise NotCalls("an empty text")
    text = text.removeprefix(" ")
    if not text.startswith("["):
        text = f"[{text}"
    if not text.endswith("]"):
        text = f"{text}]"
    body = expression(text.strip("[]'"))
    if isinstance(body, ast.Call):
        return [_call(body)]
    if isinstance(body, (ast.Tuple, ast.List)):
        if not all(isinstance(item, ast.Call) for item in body.elts):
            raise NotCalls("a list with other things than calls")
        return [_call(item) for item in body.elts if isinstance(item, ast.Call)]
    return []


def as_evaluated(name: str, arguments: Mapping[str, Any]) -> Call:
    """A call, with what its evaluation stumbles over.

    Raises:
        NotCalls: Upstream cannot write it down.
    """
    undefined = None
    for value in arguments.values():
        if isinstance(value, dict):
            undefined = undefined or _as_call(value)
        elif not _has_literal(value):
            undefined = undefined or "inf"
    if "None" in arguments:  # `**`, which upstream writes as a keyword None
        undefined = undefined or "None"
    return Call(name, dict(arguments), undefined)


def _call(node: ast.Call) -> Call:
    return as_evaluated(name_of(node), {str(key): v for key, v in arguments_of(node).items()})


def _as_call(value: dict[Any, Any]) -> str:
    """The name under which a dict is called: upstream takes it for a nested call, `{name: arguments}`."""
    name = next(iter(value), None)
    if not isinstance(arguments := value.get(name), dict):
        raise NotCalls("a dict as an argument")
    for inner in arguments.values():
        if isinstance(inner, dict):
            _as_call(inner)
    return str(name)


def _has_literal(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_has_literal(item) for item in value)
    if isinstance(value, dict):
        return all(_has_literal(item) for pair in value.items() for item in pair)
    return not isinstance(value, float) or math.isfinite(value)
