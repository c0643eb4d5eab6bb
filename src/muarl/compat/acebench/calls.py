"""Calls in a model's text, `[send_message(sender_name='Eve', ...), ...]`: parsed, never evaluated.

Upstream parses the text, writes each call anew and evaluates that. What then comes out at the other
end is done here without: positional arguments are lost, a bare name is its text, and of a signed
number the sign is always minus.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable
from typing import Any

import msgspec

_BRACKETED = re.compile(r"\[.*\]")
_LONGEST = 1 << 16
"""Characters of a repeated text; upstream would compute until it has no memory."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class NotCalls(ValueError):
    """A text that is no list of calls."""


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
    try:
        return _parsed(text)
    except NotCalls:
        raise
    except Exception as error:  # noqa: BLE001 - what upstream catches
        # Syntax, recursion, arithmetic, and whatever else a text can bring about.
        raise NotCalls(f"{type(error).__name__}: {error}") from None


def _parsed(text: str) -> list[Call]:
    if not text:
        raise NotCalls("an empty text")
    text = text.removeprefix(" ")
    if not text.startswith("["):
        text = f"[{text}"
    if not text.endswith("]"):
        text = f"{text}]"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        body = ast.parse(text.strip("[]'"), mode="eval").body
    if isinstance(body, ast.Call):
        return [_call(body)]
    if isinstance(body, (ast.Tuple, ast.List)):
        if not all(isinstance(item, ast.Call) for item in body.elts):
            raise NotCalls("a list with other things than calls")
        return [_call(item) for item in body.elts if isinstance(item, ast.Call)]
    return []


def _call(node: ast.Call) -> Call:
    arguments = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
    undefined = None
    for value in arguments.values():
        if isinstance(value, dict):
            undefined = undefined or _as_call(value)
        elif not _has_literal(value):
            undefined = undefined or "inf"
    if None in arguments:  # `**`, which upstream writes as a keyword None
        undefined = undefined or "None"
    return Call(_name(node), {str(key): value for key, value in arguments.items()}, undefined)


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


def _name(node: ast.Call) -> str:
    parts: list[str] = []
    at: ast.expr = node.func
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        parts.append(at.id)
    return ".".join(reversed(parts))


def _value(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=value):
            return "..." if value is Ellipsis else value
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() | complex() as value)):
            return -value
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_value(k): _value(v) for k, v in zip(keys, values, strict=True)}
        case ast.BinOp():
            return _computed(node)
        case ast.Name(id=name):
            return name
        case ast.Call(keywords=[]):
            return ast.unparse(node)
        case ast.Call():
            inner = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
            return {_name(node): inner}
        case ast.Subscript(value=value, slice=index):
            return f"{ast.unparse(value)}[{ast.unparse(index)}]"
    raise NotCalls(f"a {type(node).__name__} as an argument")


def _computed(node: ast.expr) -> Any:
    """The value of sums and products of constants, which upstream evaluates."""
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_computed(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_computed(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            pair = _computed(left), _computed(right)
            texts = [isinstance(value, str) for value in pair]
            if any(texts) and not (all(texts) and isinstance(op, ast.Add)):
                raise NotCalls("arithmetic on texts")
            found = _BINARY[type(op)](*pair)
            if isinstance(found, str) and len(found) > _LONGEST:
                raise NotCalls("a text too long")
            return found
    raise NotCalls("an expression that is not read")
