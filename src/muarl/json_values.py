"""Which values muarl takes for JSON: those that memory, journal and wire all hold alike.

Python's own parser reads more: `NaN`, integers of any size, half a surrogate pair, nesting down to
wherever the stack happens to end. Such a value would be one thing in a world and another in its
record, so it is refused where it comes in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Far above any tool argument or world of sense, far below where parsers and encoders give up.
_MAX_NESTING = 100

# What msgpack holds as an integer.
_INTEGERS = range(-(2**63), 2**64)


def json_problem(value: Any, at: str = "") -> str | None:
    """Why `value` is not such a value, with its dotted path; None if it is.

    Mappings and sequences of any class pass for objects and arrays.

    Example:
        >>> json_problem({"a": [1.0, float("nan")]})
        'a.1 is nan, which JSON has no number for'
    """
    return _problem(value, at, 0)


def _problem(value: Any, at: str, depth: int) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _text_problem(value, at)
    if isinstance(value, int):
        return None if value in _INTEGERS else f"{at or 'it'} is an integer beyond 64 bits"
    if isinstance(value, float):
        return None if math.isfinite(value) else _no_number(value, at)
    if depth == _MAX_NESTING:
        return f"{at.partition('.')[0] or 'it'} is nested deeper than {_MAX_NESTING}"
    if isinstance(value, Mapping):
        return _mapping_problem(value, at, depth)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        items = enumerate(value)
        return next((p for i, v in items if (p := _problem(v, _below(at, i), depth + 1))), None)
    return f"{at or 'it'} is of type {type(value).__name__}, which is no JSON"


def _mapping_problem(value: Mapping[Any, Any], at: str, depth: int) -> str | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return f"{at or 'it'} has the key {key!r}; keys are text"
        problem = _text_problem(key, f"a key of {at or 'it'}") or _problem(
            item, _below(at, key), depth + 1
        )
        if problem:
            return problem
    return None


def _text_problem(text: str, at: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{at or 'it'} holds half a surrogate pair"
    return None


def _no_number(value: float, at: str) -> str:
    return f"{at or 'it'} is {value}, which JSON has no number for"


def _below(at: str, key: object) -> str:
    return f"{at}.{key}" if at else str(key)


def texts_in(value: Any) -> Iterator[str]:
    """The texts in JSON data, in order; keys are none.

    Example:
        >>> list(texts_in({"a": ["x", 1], "b": "y"}))
        ['x', 'y']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_in(inner)
