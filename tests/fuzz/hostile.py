"""Hostile values, and sound documents spoiled: node by node, and sign by sign."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

PLANTED = "zzz_planted"
"""A key that no model has."""

Path = tuple[str | int, ...]

TEXTS = (
    *("", " ", "\n", "a", "W1", "yes", "null", "~", "012", "12:30", "<<", "[key]", "<Spec>"),
    *(
        "'; DROP TABLE books; --",
        ":card",
        "{card}",
        "{",
        "%s",
        "../../etc/passwd",
        "a.b",
        ".",
        "..",
    ),
    *(
        "\x00",
        "\x85",
        "\u2028",
        "\ufeff",
        "é",
        "ﬁ",
        "😀",
        "\ud800",
        "²",
        "٣",
        "x" * 5000,
        "9" * 5000,
    ),
    *("${env:HOME}", "$world", "(?=a)", "(a+)+$", "*", "tasks.py:generate", "\\", '"', "#", "- a"),
)
NUMBERS = (
    *(0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400),
    *(0.0, -0.0, 0.5, 1.5, 1e-320, 1e308, 1e22, math.nan, math.inf, -math.inf),
)
SCALARS = st.sampled_from([None, True, False, *NUMBERS, *TEXTS])

SHARDS = (
    *("\n", "\n\n", "\t", " ", "  ", "- ", "? ", ": ", ":", ",", "[", "]", "{", "}", "#", "|", ">"),
    *("&a ", "*a", "!!str ", "!x ", "<<: ", "'", '"', "%YAML 1.2\n", "---\n", "...\n", "~", "\\"),
    *("null", "true", ".nan", "-.inf", "1e999", "9" * 30, "0o7", "12:30", "\x00", "\ufffd", "\xa0"),
    *("\u2028", "\x85", "\ufeff", '"\\ud800"', '"\\UFFFFFFFF"', "? {a: b}", "[[[[", "@", "`", "="),
    *("1", "[" * 200, "{a: " * 70, "[&b [*b, *b]]", "&a [x]\nb: [*a, *a]"),
)


def values(leaves: int = 6) -> st.SearchStrategy[Any]:
    """JSON, and what only looks like it: numbers that are none, halves of characters."""
    scalars = SCALARS | st.integers() | st.floats() | st.text(max_size=8)
    keys = st.sampled_from([text for text in TEXTS if len(text) < 100]) | st.text(max_size=4)
    return st.recursive(
        scalars,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=4),
        max_leaves=leaves,
    )


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def spoiled_text(draw: st.DrawFn, text: str) -> str:
    """A text with a few places overwritten, doubled or cut out."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        shard = draw(st.sampled_from(SHARDS) | st.just(text[end : end + 20]) | st.text(max_size=4))
        text = text[:at] + shard + text[end:]
    return text


def spoiled_tree(
    draw: st.DrawFn, tree: Any, others: Sequence[Any], *, plant: bool
) -> tuple[Any, Path | None]:
    """A document in which nodes are replaced, doubled, renamed, moved or taken out.

    Args:
        draw: Draws what is done, and where.
        tree: The document; it is left as it is.
        others: Documents that nodes may come from.
        plant: Besides, plant a key that no model has.

    Returns:
        The spoiled document, and the mapping that the key was planted in.
    """
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(0 if plant else 1, 3))):
        holder, key = _place(draw, tree)
        if holder is not None:
            _spoil(draw, holder, key, others)
    if not plant:
        return tree, None
    mappings = [path for path, node in _walk(tree, ()) if isinstance(node, dict)]
    if not mappings:
        return tree, None
    path = draw(st.sampled_from(mappings))
    at(tree, path)[PLANTED] = draw(SCALARS)
    return tree, path


def _spoil(draw: st.DrawFn, holder: Any, key: Any, others: Sequence[Any]) -> None:
    how = draw(st.sampled_from(["value", "node", "gone", "rename", "wrap", "unwrap", "double"]))
    value = holder[key]
    if how == "value":
        holder[key] = draw(SCALARS)
    elif how == "node":
        other = draw(st.sampled_from(others))
        holder[key] = copy.deepcopy(draw(st.sampled_from([node for _, node in _walk(other, ())])))
    elif how == "gone":
        del holder[key]
    elif how == "wrap":
        holder[key] = draw(st.sampled_from([[value], {"a": value}, [value, value]]))
    elif how == "unwrap" and isinstance(value, (dict, list)) and value:
        holder[key] = value[0] if isinstance(value, list) else next(iter(value.values()))
    elif how == "rename" and isinstance(holder, dict):
        del holder[key]
        holder[draw(st.sampled_from([*holder, "world", "any", "sql", "", "a"]))] = value
    elif how == "double" and isinstance(holder, list):
        holder.append(copy.deepcopy(value))


def _place(draw: st.DrawFn, tree: Any) -> tuple[Any, Any]:
    paths = [path for path, _ in _walk(tree, ()) if path]
    if not paths:
        return None, None
    path = draw(st.sampled_from(paths))
    return at(tree, path[:-1]), path[-1]


def _walk(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _walk(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _walk(value, (*path, index))


def at(tree: Any, path: Path) -> Any:
    """The node at a path."""
    for part in path:
        tree = tree[part]
    return tree


def as_yaml(value: Any, indent: int = 0) -> str:
    """A document as YAML, in block style; written here, so that no writer of muarl's helps it."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{_scalar(key)}:{_below(item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}-{_below(item, indent)}" for item in value)
    return f"{pad}{_scalar(value)}\n"


def _below(value: Any, indent: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return "\n" + as_yaml(value, indent + 1)
    return f" {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(value)]
    return json.dumps(value)
