"""From a world and what was changed in it to the world as it was afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from muarl.world.compare import Change, equal, is_list, is_map, join
from muarl.world.nodes import MapNode
from muarl.world.paths import split


def apply_changes(world: MapNode, changes: Iterable[Change]) -> None:
    """Make the changes that `diff` found, in a world like the one that they were found in.

    Afterwards `diff` of the world before and after gives equal changes.

    Raises:
        ValueError: At the path of a change the world does not hold what was there before.
    """
    gone: list[Change] = []
    for change in changes:
        if change.kind == "removed":
            gone.append(change)
        else:
            _write(world, change)
    # What a list lost is named from the front: taken from behind, every position still holds.
    for change in reversed(gone):
        holder, key = _place(world, change)
        del holder[key]


def _write(world: MapNode, change: Change) -> None:
    holder, key = _place(world, change)
    if is_list(holder) and key == len(holder):
        holder.append(change.after)
    else:
        holder[key] = change.after


def _place(world: MapNode, change: Change) -> tuple[Any, Any]:
    """The container that a change is in, and the key or position at which.

    Raises:
        ValueError: Something else is there than was before.
    """
    holder: Any = world
    *above, last = _parts(change.path)
    for part in above:
        holder = holder[_key(holder, part, change)]
    if change.kind == "added":
        key: Any = int(last) if is_list(holder) and last.isdecimal() else last
        if (is_list(holder) and key == len(holder)) or (is_map(holder) and key not in holder):
            return holder, key
        raise ValueError(f"{change.path}: nothing could be added there")
    key = _key(holder, last, change)
    if not equal(holder[key], change.before):
        raise ValueError(f"{change.path}: there is {holder[key]!r}; it was {change.before!r}")
    return holder, key


def _key(holder: Any, part: str, change: Change) -> Any:
    """`part` as a key of `holder`, which has it."""
    if is_list(holder) and part.isdecimal() and int(part) < len(holder):
        return int(part)
    if is_map(holder) and part in holder:
        return part
    raise ValueError(f"{change.path}: there is no {part!r}")


def _parts(path: str) -> list[str]:
    parts = split(path)
    if reduce(join, parts, "") != path:  # it has another spelling: it is none that `diff` wrote
        raise ValueError(f"{path!r} is no path of a change")
    return parts
