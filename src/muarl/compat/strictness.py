"""Differences as the recorded vectors write them: JSON Pointers, and 3 is not 3.0.

muarl's own worlds hold 3 and 3.0 to be equal; the official evaluators hash texts, in which they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muarl.world.compare import is_list, is_map, keys_to_compare, peek, plain, same_origin

Item = dict[str, Any]
"""`{op: replace | add | remove, path: RFC 6901 pointer, old?, new?}`."""


def strict_diff(before: Any, after: Any) -> list[Item]:
    """What was replaced, added and removed, in the order of keys and positions.

    Lists are compared place by place; what one has beyond the other is added or removed by index.

    Args:
        before: Plain JSON or part of a world.
        after: Likewise. Forks of one world cost what was written in them.

    Example:
        >>> strict_diff({"a": [1, 2]}, {"a": [1.0]})
        [{'op': 'replace', 'path': '/a/0', 'old': 1, 'new': 1.0}, {'op': 'remove', 'path': '/a/1', 'old': 2}]
    """
    return list(_walk(before, after, ""))


def strictly_equal(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON, types of numbers included."""
    return next(_walk(left, right, ""), None) is None


def pointer(path: str, key: str | int) -> str:
    """The pointer of what is at `key` below `path` (RFC 6901)."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _walk(left: Any, right: Any, path: str) -> Iterator[Item]:
    if same_origin(left, right):
        return
    if is_map(left) and is_map(right):
        for key in sorted(keys_to_compare(left, right)):
            yield from _walk_place(left, right, key, key in left, key in right, pointer(path, key))
    elif is_list(left) and is_list(right):
        for i in range(max(len(left), len(right))):
            yield from _walk_place(left, right, i, i < len(left), i < len(right), pointer(path, i))
    elif is_map(left) or is_map(right) or type(left) is not type(right) or left != right:
        yield {"op": "replace", "path": path, "old": plain(left), "new": plain(right)}


def _walk_place(
    left: Any, right: Any, key: Any, ours: bool, theirs: bool, path: str
) -> Iterator[Item]:
    if ours and theirs:
        yield from _walk(peek(left, key), peek(right, key), path)
    elif ours:
        yield {"op": "remove", "path": path, "old": plain(peek(left, key))}
    elif theirs:
        yield {"op": "add", "path": path, "new": plain(peek(right, key))}
