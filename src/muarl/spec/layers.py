"""Overlays: several files of one kind, and values from the command line, as one document.

They are laid over each other from left to right. Mappings are merged key by key; whatever else an
overlay says replaces what was there, lists too. Of a mapping of which one key says what it is,
`engine: {vllm: ...}`, another key replaces the one before. Every value keeps its place, so that a
problem is reported in the file that said it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from muarl.errors import Problem, SpecError
from muarl.spec.document import MAX_DEPTH, Node, Place, parse_document
from muarl.spec.shape import Shape

_SHOWN = 200
"""Characters of a setting that messages repeat."""


def overlaid(base: Node, over: Node, shape: Shape) -> Node:
    """What a document is once another is laid over it.

    Args:
        base: What was there.
        over: What is said now, of the same part of a file.
        shape: What may stand there.
    """
    if not isinstance(base.data, dict) or not isinstance(over.data, dict):
        return over
    kinds = shape.kinds & over.children.keys()
    gone = shape.kinds if kinds and not kinds & base.children.keys() else set()
    kept = {key: child for key, child in base.children.items() if key not in gone}
    if gone and not kept:
        return over
    keys = {key: place for key, place in base.keys.items() if key not in gone} | over.keys
    merged = Node({}, base.place, keys=keys, mended=over.mended or over.place)
    merged.children = kept | over.children
    for key in kept.keys() & over.children.keys():
        below = shape.below(key)
        merged.children[key] = overlaid(base.children[key], over.children[key], below)
    merged.data = {key: child.data for key, child in merged.children.items()}
    return merged


def with_defaults(root: Node, shape: Shape) -> None:
    """Lay each item of a list over what the items share.

    Args:
        root: A document with `defaults` and `tasks`; changed.
        shape: What an item may be.
    """
    defaults, items = root.children.get("defaults"), root.children.get("tasks")
    if defaults is None or items is None:
        return
    for at, item in items.children.items():
        if isinstance(at, int) and isinstance(item.data, dict) and isinstance(defaults.data, dict):
            whole = overlaid(defaults, item, shape)
            whole.place, whole.mended = item.place, None  # it is the item, with more in it
            items.children[at], items.data[at] = whole, whole.data


def setting(text: str) -> Node:
    """The document that `--set a.b=c` lays over others, `{a: {b: c}}`.

    Args:
        text: Path and value; the value is YAML.

    Raises:
        SpecError: There is no path, or the value is not YAML.
    """
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    place = Place(f"--set {shown}", 0, 0)
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        _refuse(place, ["expected KEY=VALUE, such as grpo.lr=1e-6"])
    try:
        node, problems = parse_document(value, place.path)
    except SpecError as error:
        problems = list(error.problems)
    if problems:
        _refuse(place, [problem.message for problem in problems])
    if len(keys) + node.height > MAX_DEPTH:
        _refuse(place, [f"nested more than {MAX_DEPTH} levels deep"])
    _stand(node, place)
    for key in reversed(keys):
        node = Node({key: node.data}, place, children={key: node}, keys={key: place})
    return node


def refer_from(root: Node, paths: Iterable[tuple[str, ...]], old: Path, new: Path) -> None:
    """Let the paths of an overlay be relative to another folder.

    Args:
        root: The overlay's document; changed.
        paths: Where in it a file or folder may be named; `*` in the last place is any key.
        old: The folder that they are relative to.
        new: The folder that they shall be relative to.
    """
    if old == new:
        return
    for *above, last in paths:
        holder: Node | None = root
        for key in above:
            holder = holder and holder.children.get(key)
        for name in list(holder.children) if holder and last == "*" else [last]:
            named = holder and holder.children.get(name)
            if holder and named and isinstance(named.data, str) and not os.path.isabs(named.data):
                moved = os.path.relpath(old / named.data, new)
                holder.children[name] = replace(named, data=moved, given=named.data)
                holder.data[name] = moved


def _stand(node: Node, place: Place) -> None:
    """Let a value and all in it stand at one place."""
    node.place = place
    node.keys = dict.fromkeys(node.keys, place)
    for child in node.children.values():
        _stand(child, place)


def _refuse(place: Place, messages: Iterable[str]) -> NoReturn:
    raise SpecError([Problem(*place, message) for message in dict.fromkeys(messages)])
