"""Published schemas of functions in the words of JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = {"dict": "object", "list": "array", "tuple": "array", "float": "number"}


def json_schema(given: Any) -> Any:
    """A schema whose types have Python's names, with those of JSON Schema.

    Example:
        >>> json_schema({"type": "dict", "properties": {"n": {"type": "float"}}})
        {'type': 'object', 'properties': {'n': {'type': 'number'}}}
    """
    if isinstance(given, Mapping):
        return {
            key: _TYPES.get(value, value)
            if key == "type" and isinstance(value, str)
            else json_schema(value)
            for key, value in given.items()
        }
    return [json_schema(item) for item in given] if isinstance(given, list) else given
