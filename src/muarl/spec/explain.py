"""Validation problems in words: what the field must be, what it is, what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muarl.errors import did_you_mean
from muarl.spec.base import (
    ENV_NAME_PATTERN,
    ID_PATTERN,
    PYTHON_ANYWHERE_PATTERN,
    PYTHON_REF_PATTERN,
    Spec,
)
from muarl.spec.document import Node, Place, is_tag
from muarl.spec.plugged import ERROR as PLUGIN_ERROR
from muarl.spec.plugged import NAME_ERROR as PLUGIN_NAME_ERROR
from muarl.spec.schema import newest_version
from muarl.spec.shape import Shape, shape_at

Loc = Sequence[str | int]
"""Path to a field: keys and list indexes."""

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_PATTERNS = {
    ID_PATTERN: "letters, digits, '_', '-' or '.', beginning with a letter or digit",
    PYTHON_REF_PATTERN: "file.py:name",
    PYTHON_ANYWHERE_PATTERN: "file.py:name",
}


def explain(error: ErrorDetails, root: Node, model: type[Spec]) -> tuple[Place, str]:
    """Place and message of one of pydantic's errors."""
    kind, loc = error["type"], root.in_file(error["loc"])
    if kind == "extra_forbidden":
        fields = shape_at(model, error["loc"][:-1]).fields
        return root.key_place(loc), unknown_field(str(loc[-1]), fields, shape_at(model, ()))
    if kind == PLUGIN_NAME_ERROR:
        return root.key_place(loc), error["msg"]
    if kind == PLUGIN_ERROR:
        return root.find(loc).place, f"{name_of(loc)}: {error['msg']}"
    if kind == "one_of":
        return root.find(loc).place, f"{name_of(loc)}: {_one_of(error)}"
    if kind == "missing":
        return root.find(loc[:-1]).place, missing_field(loc[-1], model)
    if loc and loc[-1] == "[key]":
        key = str(loc[-2])
        return root.key_place(loc[:-1]), f"key {_wrong(key, error)}"
    if kind == "value_error":
        node = root.find(
            loc
        )  # what a whole mapping breaks, its last overlay may have brought about
        return node.mended or node.place, f"{name_of(loc)}: {error['ctx']['error']}"
    shape = _shape(error["type"], error["input"], shape_at(model, error["loc"]))
    return root.find(loc).place, f"{name_of(loc)} {_wrong(error['input'], error)}{shape}"


def in_words(error: ValidationError) -> str:
    """What is wrong with a model that Python made, `TaskSpec: unknown field 'persona'; ...`."""
    models = [Spec]
    for model in models:
        models += model.__subclasses__()
    made = next((model for model in models if model.__name__ == error.title), Spec)
    said = []
    for details in error.errors(include_url=False):
        kind, loc = details["type"], tuple(part for part in details["loc"] if not is_tag(part))
        above = "".join(f"{part}." for part in loc[:-1])
        if kind == "extra_forbidden":
            what = unknown_field(str(loc[-1]), shape_at(made, details["loc"][:-1]).fields)
            said.append(f"{above[:-1]}: {what}" if above else what)
        elif kind == "missing":
            said.append(f"missing field {above + str(loc[-1])!r}")
        elif kind in (PLUGIN_ERROR, PLUGIN_NAME_ERROR):
            said.append(details["msg"])
        elif kind == "value_error":
            said.append(f"{details['ctx']['error']}")
        else:
            field = ".".join(map(str, loc))
            said.append(f"{field!r} {_wrong(details['input'], details)}")
    return f"{error.title}: {'; '.join(said)}"


def _shape(kind: str, given: Any, shape: Shape) -> str:
    """What to write where a list or a mapping is wanted, as far as the model says."""
    if kind == "list_type":
        inner = shape.below(0)
        if inner.fields:
            return f"; after each `-` write {_keys(inner)}"
        return f"; write [{json.dumps(given)}]" if isinstance(given, (str, int, float)) else ""
    if kind == "dict_type" and (inner := shape.below("name")).fields:
        return f"; below each name, write {_keys(inner)}"
    return f"; write {_keys(shape)}" if kind.startswith("model_") and shape.fields else ""


def _keys(shape: Shape) -> str:
    if kinds := shape.kinds:
        one = ", ".join(name for name in shape.fields if name in kinds)
        return f"a mapping with exactly one of the keys {one}"
    return f"a mapping with the keys {', '.join(shape.fields)}"


def missing_field(name: str | int, model: type[Spec]) -> str:
    """What to say about a field that is not there."""
    if name != "version":
        return f"missing field {name!r}"
    return f"missing field 'version'; write `version: {newest_version(model)}`"


def unknown_field(name: str, fields: Sequence[str], file: Shape | None = None) -> str:
    """What to say about a key that no field has.

    Args:
        name: The key.
        fields: Those that there are.
        file: What the whole file may be: a key that stands in another part of it is meant there.
    """
    near = did_you_mean(name, fields) or (_elsewhere(name, file) if file else "")
    tail = near or f"; fields here: {', '.join(fields)}"
    return f"unknown field {name!r}{tail}"


_PLACES = 2
"""Parts of a file that are named as the one that a key may belong to; of more, none is."""


def _elsewhere(name: str, file: Shape) -> str:
    """The parts of a file that have such a key."""
    parts = ["", *(f"{part}." for part in file.fields)]
    found = [
        f"{part}{name}"
        for part in parts
        if name in (file.below(part[:-1]) if part else file).fields
    ]
    return f"; did you mean {' or '.join(map(repr, found))}?" if 0 < len(found) <= _PLACES else ""


def _one_of(error: ErrorDetails) -> str:
    """None or several of the keys of which a mapping has one."""
    given, said = error["input"], error["msg"]
    if not isinstance(given, Mapping):
        return f"{said}, got {describe(given)}"
    keys = re.findall(r"\w+", said.partition(" of ")[2])
    near = next((hint for key in given if (hint := did_you_mean(str(key), keys))), "")
    got = [key for key in given if key in keys]
    return f"{said}; got {' and '.join(got)}" if got else f"{said}{near}"


def _wrong(value: Any, error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    got = f"got {describe(value)}"
    if kind in _TYPES:
        quote = kind == "string_type" and isinstance(value, (bool, int, float))
        return f"must be {_TYPES[kind]}, {got}{'; put it in quotes' if quote else ''}"
    if kind in _BOUNDS:
        words, limit = _BOUNDS[kind]
        bound = context[limit]
        shown = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
        return f"must be {words} {shown}, {got}"
    if kind == "literal_error":
        choices = str(context["expected"])
        if choices.isdigit():  # a version has no other
            return f"must be {choices}, {got}; write {choices}"
        near = did_you_mean(value, choices.split("'")[1::2]) if isinstance(value, str) else ""
        return f"must be {choices}, {got}{near}"
    if kind == "string_pattern_mismatch" and context["pattern"] == ENV_NAME_PATTERN:
        return "must be the name of an environment variable, never what it holds"  # not quoted
    if kind == "string_pattern_mismatch" and context["pattern"] in _PATTERNS:
        return f"must be {_PATTERNS[context['pattern']]}, {got}{_like_an_id(value, context)}"
    if kind == "too_short":
        return f"needs at least {context['min_length']} entry, {got}"
    return f"is wrong: {error['msg']}, {got}"


def _like_an_id(value: Any, context: Mapping[str, Any]) -> str:
    """The id nearest to a text that is none."""
    near = re.sub(r"[^A-Za-z0-9_.-]+", "-", str(value)).strip("-_.")
    return f"; write {near}" if near and context["pattern"] == ID_PATTERN else ""


def name_of(loc: Loc) -> str:
    """A field as messages call it: `'max_turns'`, `item 4 of 'tasks'`.

    Example:
        >>> name_of(("tasks", 3, "gold", 0))
        "item 1 of 'gold'"
    """
    if not loc:
        return "the file"
    *above, last = loc
    if isinstance(last, str):
        return repr(last)
    return f"item {last + 1} of {name_of(above)}"


def describe(value: Any) -> str:
    """A value as messages quote it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
