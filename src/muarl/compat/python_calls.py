"""Calls in a model's text as upstream's decoders take them: parsed, never evaluated.

BFCL and ACEBench decode alike what stands within the brackets. What comes out at the other end of that is
done here without its `eval`: positional arguments are lost, a bare name is its text, a nested call is
`{name: arguments}`, or its text if it has no named arguments, and of a signed number the sign is always
minus.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from muarl.compat.arithmetic import ARITHMETIC, SIGNS
from muarl.json_values import json_problem
from muarl.messages import ToolCall

_LONGEST = 1 << 16
"""Characters or items of what is repeated; upstream would compute until it has no memory."""
_LARGEST_POWER = 64

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    **ARITHMETIC,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {**SIGNS, ast.Invert: operator.invert}


class NotCalls(ValueError):
    """A text that is no list of calls."""


def expression(text: str) -> ast.expr:
    """What a text says, as a tree.

    Raises:
        NotCalls: It is no Python expression, or one that Python does not read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotCalls(f"{type(error).__name__}: {error}") from None


def name_of(node: ast.Call) -> str:
    """What is called; dotted if it is an attribute, empty if it is an expression."""
    parts: list[str] = []
    at: ast.expr = node.func
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        parts.append(at.id)
    return ".".join(reversed(parts))


def arguments_of(node: ast.Call) -> dict[str | None, Any]:
    """A call's arguments by keyword; None is that of `**`.

    Example:
        >>> arguments_of(expression("f(1, a=[2, +3], b=east, c=g(d=4), e=g(5))"))
        {'a': [2, -3], 'b': 'east', 'c': {'g': {'d': 4}}, 'e': 'g(5)'}

    Raises:
        NotCalls: One of them is nothing that upstream reads.
    """
    try:
        return {keyword.arg: _value(keyword.value) for keyword in node.keywords}
    except NotCalls:
        raise
    except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
        # What the author of the text can bring about, such as a division by 0 or a list as a key.
        raise NotCalls(f"{type(error).__name__}: {error}") from None


def as_tool_call(name: str, arguments: Mapping[Any, Any], text: str) -> ToolCall:
    """A call with lists for tuples and texts for the keys of dicts; one that cannot be made if it is no JSON.

    Args:
        name: What is called.
        arguments: By keyword.
        text: What it was read from.
    """
    made = {str(key): _as_json(value) for key, value in arguments.items()}
    if problem := json_problem([name, made]):
        return ToolCall("", name, error=f"the call cannot be made: {problem}", raw=text)
    return ToolCall("", name, made)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value


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
            return {name_of(node): arguments_of(node)}
        case ast.Subscript(value=value, slice=index):
            return f"{ast.unparse(value)}[{ast.unparse(index)}]"
    raise NotCalls(f"a {type(node).__name__} as an argument")


def _computed(node: ast.expr) -> Any:
    """The value of sums and products of constants, which upstream evaluates."""
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.List(elts=items):
            return [_computed(item) for item in items]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_computed(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _calculated(op, _computed(left), _computed(right))
    raise NotCalls("an expression that is not read")


def _calculated(op: ast.operator, left: Any, right: Any) -> Any:
    lengths = [len(side) for side in (left, right) if isinstance(side, (str, list))]
    if isinstance(op, ast.Mod) and isinstance(left, str):
        raise NotCalls("a text that is filled in")
    if isinstance(op, ast.Mult) and lengths:
        times = next((side for side in (left, right) if isinstance(side, int)), 0)
        if times > 0 and lengths[0] * times > _LONGEST:
            raise NotCalls("a text or a list too long")
    if isinstance(op, ast.Pow) and (abs(right) > _LARGEST_POWER or abs(left) > 2**_LARGEST_POWER):
        raise NotCalls("a power so large is not computed")
    found = _BINARY[type(op)](left, right)
    if isinstance(found, int) and found.bit_length() > _LONGEST:
        raise NotCalls("a number too long")
    return found
