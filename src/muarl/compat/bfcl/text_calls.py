"""Calls in a model's text as BFCL's decoder takes them, for models that are only prompted.

Upstream decodes a text to calls, writes these anew as Python text and evaluates that. The first two
are done here; what is written is parsed like any other call (`muarl.compat.bfcl.expressions`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from muarl.compat.bfcl.toolkit import Version
from muarl.compat.python_calls import NotCalls, arguments_of, expression, name_of

Decoded = tuple[str, dict[str | None, Any]]
"""A function and its arguments. A nested call is `{name: arguments}`, as upstream has it."""


def decoded(text: str, version: Version) -> list[Decoded]:
    """The calls of a text, in order; a bracket that lacks is put there, and what surrounds it is taken off.

    Example:
        >>> decoded("`cd(folder='a'), ls(a=True)`", "v4")
        [('cd', {'folder': 'a'}), ('ls', {'a': True})]

    Raises:
        NotCalls: Upstream takes the text for one without calls: it is no expression, holds something
            other than calls, or arguments that upstream does not read.
    """
    text = text.strip("`\n ")
    if not text.startswith("["):
        text = f"[{text}"
    if not text.endswith("]"):
        text = f"{text}]"
    body = expression(text.strip("[]'") if version == "v3" else text.strip().strip("'"))
    items: list[ast.expr]
    match body:
        case ast.Call():
            items = [body]
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            pass
        case _:
            raise NotCalls("no list of calls")
    calls = []
    for item in items:
        if not isinstance(item, ast.Call):
            raise NotCalls("a list with other things than calls")
        call = name_of(item), arguments_of(item)
        try:  # what cannot be written down is not decoded either
            execution_text(*call)
        except (ValueError, RecursionError) as error:
            raise NotCalls(f"{type(error).__name__}: {error}") from None
        calls.append(call)
    return calls


def execution_text(name: str, arguments: Mapping[Any, Any]) -> str:
    """A decoded call as the text that upstream evaluates.

    Example:
        >>> execution_text("add", {"a": {"double": {"x": 2}}, "b": {"k": 1}})
        "add(a=double(x=2), b={'k': 1})"

    Raises:
        NotCalls: It cannot be written: upstream takes an empty dict for a call, and finds no name.
    """
    return f"{name}({', '.join(f'{key}={_nested(value)}' for key, value in arguments.items())})"


def _nested(value: Any) -> str:
    """A value; a dict of nothing but dicts is a call, of which the first counts."""
    if not isinstance(value, dict):
        return repr(value)
    if not value:
        raise NotCalls("an empty dict as an argument")
    if all(isinstance(inner, dict) for inner in value.values()):
        return execution_text(*next(iter(value.items())))
    items = (f"'{key}': {_nested(inner)}" for key, inner in value.items())
    return f"{{{', '.join(items)}}}"
