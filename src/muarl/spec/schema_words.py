"""What a piece of JSON Schema asks for, in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from muarl.spec.base import (
    ENV_NAME_PATTERN,
    ID_PATTERN,
    PYTHON_ANYWHERE_PATTERN,
    PYTHON_REF_PATTERN,
)
from muarl.spec.sql import PARAMETER_PATTERN

Link = Callable[[str], str]
"""Name of a model to a link to what is said of it."""

_PATTERNS = {
    ID_PATTERN: "id",
    ENV_NAME_PATTERN: "name of a variable",
    PYTHON_REF_PATTERN: "`file.py:name`",
    PYTHON_ANYWHERE_PATTERN: "`file.py:name`",
    PARAMETER_PATTERN: "name",
    r"^https?://[^\s/?#]+": "URL",
}
"""Texts of a form that has a name."""
_PLAIN = {"string": "text", "boolean": "true or false", "null": "null"}
_BITS = 2**63


def type_words(schema: dict[str, Any], link: Link) -> str:
    """What a value must be: "a list of [Predicate](#predicate), at least 1"."""
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _one_of(choices, link, null=schema.get("default") is not None)
    if "const" in schema:
        return f"`{_yaml(schema['const'])}`"
    if "enum" in schema:
        return _or([f"`{_yaml(value)}`" for value in schema["enum"]])
    match schema.get("type"):
        case "string":
            pattern = schema.get("pattern")
            return _PATTERNS.get(pattern, f"text like `{pattern}`") if pattern else "text"
        case "integer" | "number" as kind:
            return _number("whole number" if kind == "integer" else "number", schema)
        case "array":
            items = type_words(schema.get("items", {}), link)
            return f"list of {items}{_at_least(schema.get('minItems'))}"
        case "object":
            return f"{_mapping(schema, link)}{_at_least(schema.get('minProperties'))}"
        case plain:
            return _PLAIN.get(str(plain), "any value")


def default_words(schema: dict[str, Any], *, required: bool) -> str:
    """What stands for a key that is left out, or whether it may be: "`0.15`", "required"."""
    if required:
        return "required"
    value = schema.get("default")
    return "optional" if value is None else f"`{_yaml(value)}`"


def _one_of(choices: list[dict[str, Any]], link: Link, *, null: bool) -> str:
    """The choices; null among them is worth a word only where leaving the key out is not the same."""
    if [choices[0]] == [choice.get("items") for choice in choices[1:]]:
        return f"{type_words(choices[0], link)}; one, or a list"
    shown = [choice for choice in choices if null or choice.get("type") != "null"]
    return _or(list(dict.fromkeys(type_words(choice, link) for choice in shown)))


def _number(kind: str, schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    words = [kind]
    if low == -_BITS:
        words.append("of at most 64 bits")
    elif low is not None and high is not None:
        words.append(f"from {low} to {high}")
    else:
        limits = [
            f"at least {low}" if low is not None else "",
            f"above {above}" if above is not None else "",
            f"at most {high}" if high is not None else "",
            f"below {below}" if below is not None else "",
        ]
        words.append(" and ".join(filter(None, limits)))
    if "multipleOf" in schema:
        words.append(f"in steps of {schema['multipleOf']}")
    return " ".join(filter(None, words))


def _mapping(schema: dict[str, Any], link: Link) -> str:
    """A mapping, with what its keys and values are, as far as anything is asked of them."""
    for pattern, value in schema.get("patternProperties", {}).items():
        return f"mapping of {_PATTERNS.get(pattern, 'text')} to {type_words(value, link)}"
    value = schema.get("additionalProperties")
    if isinstance(value, dict) and value:
        return f"mapping of text to {type_words(value, link)}"
    return "mapping"


def _at_least(count: int | None) -> str:
    return ", not empty" if count == 1 else f", {count} or more" if count else ""


def _or(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _yaml(value: Any) -> str:
    """A value as one would write it into a file: `{embedded: {}}`."""
    if isinstance(value, dict):
        given = {key: below for key, below in value.items() if below is not None}
        return f"{{{', '.join(f'{key}: {_yaml(below)}' for key, below in given.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) and value.isprintable() and value else json.dumps(value)
