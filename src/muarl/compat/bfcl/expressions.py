"""Calls as Python text, parsed and never evaluated.

Upstream hands a model's text to `eval`. What a text can do there and here: literals, lists, dicts,
sets and tuples of them, arithmetic on numbers, calls of the functions that are offered, with positional,
keyword and starred arguments, nested as deep as one likes, and subscripts of what a call gave. Whatever
else Python knows (attributes, comprehensions, lambdas, builtins) is an error here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from muarl.compat.arithmetic import ARITHMETIC, SIGNS

Functions = Mapping[str, Callable[..., Any]]

LONGEST = 200_000
"""Characters of a call; a longer text is an error."""

_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {**SIGNS, ast.Not: operator.not_}
_LARGEST_POWER = 64


class NotACall(ValueError):
    """A text says what no call may say."""


def value_of(text: str, functions: Functions) -> Any:
    """What a text stands for, with its calls made on `functions`, inner ones first.

    Example:
        >>> value_of("add(1, b=double(2)['result'])", {"add": int.__add__, ...})  # doctest: +SKIP
        5

    Raises:
        SyntaxError: It is no Python expression.
        NameError: It names what is not offered.
        NotACall: It is more than calls and literals.
        Exception: What a function raised; among them TypeError about its arguments.
    """
    if len(text) > LONGEST:
        raise NotACall(f"a call of {len(text)} characters; at most {LONGEST} are read")
    return _value(ast.parse(text.strip(), mode="eval").body, functions)


def name_of(text: str) -> str:
    """The function that a text calls first, as its letters say: `f` of `f(1)`."""
    return text.partition("(")[0].strip()


def written(name: str, arguments: Mapping[str, Any]) -> str:
    """A call by names as the text that upstream makes of it.

    Example:
        >>> written("wc", {"file_name": "a", "mode": "l"})
        "wc(file_name='a',mode='l')"
    """
    return f"{name}({','.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _value(node: ast.expr, functions: Functions) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items):
            return _items(items, functions)
        case ast.Tuple(elts=items):
            return tuple(_items(items, functions))
        case ast.Set(elts=items):
            return set(_items(items, functions))
        case ast.Dict():
            return _dict(node, functions)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand, functions))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
            return _calculated(op, _value(left, functions), _value(right, functions))
        case ast.Call(func=ast.Name(id=name)):
            return _called(name, node, functions)
        case ast.Subscript(value=of, slice=key) if not isinstance(key, ast.Slice):
            return _value(of, functions)[_value(key, functions)]
        case ast.Name(id=name):
            raise NameError(f"name {name!r} is not defined")
    raise NotACall(f"a call may not hold {ast.unparse(node)[:200]!r}")


def _called(name: str, node: ast.Call, functions: Functions) -> Any:
    if name not in functions:
        raise NameError(f"name {name!r} is not defined")
    keywords: dict[str, Any] = {}
    arguments = _items(node.args, functions)
    for keyword in node.keywords:
        value = _value(keyword.value, functions)
        named = {keyword.arg: value} if keyword.arg is not None else dict(value)
        keywords |= {str(key): item for key, item in named.items()}
    return functions[name](*arguments, **keywords)


def _items(nodes: list[ast.expr], functions: Functions) -> list[Any]:
    items: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items.extend(_value(node.value, functions))
        else:
            items.append(_value(node, functions))
    return items


def _dict(node: ast.Dict, functions: Functions) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            made |= _value(value, functions)
        else:
            made[_value(key, functions)] = _value(value, functions)
    return made


def _calculated(op: ast.operator, left: Any, right: Any) -> Any:
    joined = isinstance(op, ast.Add) and type(left) is type(right) and isinstance(left, (str, list))
    if not joined and not (_is_number(left) and _is_number(right)):
        raise NotACall(f"arithmetic is for numbers, not for {left!r:.80} and {right!r:.80}")
    if isinstance(op, ast.Pow) and (abs(right) > _LARGEST_POWER or abs(left) > 2**_LARGEST_POWER):
        raise NotACall("a power so large is not computed")
    return ARITHMETIC[type(op)](left, right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))
