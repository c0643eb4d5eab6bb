"""What differs between two worlds or JSON values, path by path, and what makes them equal."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, MutableSequence
from typing import Any

import msgspec
from pydantic_core import SchemaSerializer, core_schema

_ENCODE = msgspec.msgpack.Encoder().encode

Json = Any
"""None, bool, int, float, str, or a list or str-keyed dict of such."""


class Change(msgspec.Struct, frozen=True):
    """One difference between two worlds.

    Attributes:
        path: Dotted path, `orders.W4173.status`; see `join`.
        before: Plain value on the left, None if absent.
        after: Plain value on the right, None if absent.
        kind: "changed", "added" or "removed".
    """

    path: str
    before: Json
    after: Json
    kind: str

    def __str__(self) -> str:
        if self.kind == "added":
            return f"{self.path}: added {self.after!r}"
        if self.kind == "removed":
            return f"{self.path}: removed {self.before!r}"
        return f"{self.path}: {self.before!r} -> {self.after!r}"


class Node(ABC):
    """What map and list nodes share; pydantic (and so MCP results) serialises nodes as plain data."""

    __slots__ = ()
    __pydantic_serializer__ = SchemaSerializer(
        core_schema.any_schema(
            serialization=core_schema.plain_serializer_function_ser_schema(lambda node: plain(node))
        )
    )
    _base: Any

    @abstractmethod
    def _peek(self, key: Any) -> Any:
        """What is at a key or position; unlike reading it, this makes no node of the base's."""

    @abstractmethod
    def _changed(self) -> Collection[Any] | None:
        """Keys or positions at which it may differ from its base; None if anywhere."""

    def _is_unchanged(self) -> bool:
        changed = self._changed()
        return changed is not None and not changed

    def __repr__(self) -> str:
        return repr(plain(self))

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: object) -> Json:
        return plain(self)


def is_map(value: Any) -> bool:
    """Whether a value is a JSON object, of a world or plain."""
    return isinstance(value, Mapping)


def is_list(value: Any) -> bool:
    """Whether a value is a JSON array, of a world or plain."""
    return isinstance(value, (list, tuple, MutableSequence)) and not isinstance(value, bytearray)


def plain(value: Any) -> Json:
    """Copy a node, or anything made of mappings and sequences, into plain JSON data."""
    if is_map(value):
        return {str(key): plain(peek(value, key)) for key in value}
    if is_list(value):
        return [plain(peek(value, i)) for i in range(len(value))]
    return value


def equal(left: Any, right: Any) -> bool:
    """Canonical equality of two worlds or values."""
    return next(_walk(left, right, ""), None) is None


def diff(left: Any, right: Any) -> list[Change]:
    """Every difference from `left` to `right`, in the order of keys and positions."""
    return list(_walk(left, right, ""))


def canonical_diff(left: Any, right: Any, unordered: Mapping[str, Collection[str]]) -> list[Change]:
    """Like `diff`, but of some mappings only what they hold counts, not under which keys.

    Args:
        left: A world.
        right: A world.
        unordered: Those mappings, which lie at the top, to the fields of their items that do not
            count either, such as a number that repeats the key.

    Example:
        >>> before = {"loans": {"1": {"id": 1, "book": "B1"}, "2": {"id": 2, "book": "B2"}}}
        >>> after = {"loans": {"1": {"id": 1, "book": "B2"}, "2": {"id": 2, "book": "B1"}}}
        >>> canonical_diff(before, after, {"loans": {"id"}})
        []
    """
    changes: list[Change] = []
    for key in sorted(keys_to_compare(left, right)):
        if key in left and key in right and key in unordered:
            rest = _unmatched(peek(left, key), peek(right, key), unordered[key])
            changes += _walk_maps(*rest, join("", key))
        else:
            changes += _walk_key(left, right, key, "")
    return changes


def _unmatched(left: Any, right: Any, fields: Collection[str]) -> tuple[Json, Json]:
    """What is left of two mappings when equal items, `fields` apart, have gone away in pairs."""
    keys = sorted(keys_to_compare(left, right))
    ours, theirs = (
        {key: plain(peek(side, key)) for key in keys if key in side} for side in (left, right)
    )
    for key in ours.keys() & theirs.keys():
        if ours[key] == theirs[key]:
            del ours[key], theirs[key]
    partners: dict[frozenset[Any], list[str]] = {}
    for key, item in ours.items():
        partners.setdefault(_without(item, fields), []).append(key)
    for key, item in list(theirs.items()):
        equals = partners.get(_without(item, fields))
        if equals:
            del ours[equals.pop()], theirs[key]
    return ours, theirs


def _without(item: Json, fields: Collection[str]) -> frozenset[Any]:
    return frozenset((name, value) for name, value in item.items() if name not in fields)


def join(path: str, key: str) -> str:
    """The path of what is at `key` below `path`.

    A key that is empty, holds a dot or begins with a quote is written as JSON text, so that a path
    names one place and no other.

    Example:
        >>> join("prices", "v1.2")
        'prices."v1.2"'
    """
    part = key if key and "." not in key and key[0] != '"' else json.dumps(key, ensure_ascii=False)
    return f"{path}.{part}" if path else part


def _same_leaf(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right) or (_is_nan(left) and _is_nan(right))


def _surely_same(left: Any, right: Any) -> bool:
    """A quick look, without walking: what it says to be the same is; the rest may be so yet."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is dict or kind is list:
        # Python's own comparison, but for what it holds to be equal and we do not: True and 1.
        try:
            return bool(left == right) and _ENCODE(left) == _ENCODE(right)
        except (OverflowError, TypeError, ValueError, RecursionError):  # no JSON: walk it
            return False
    return kind is str and bool(left == right)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def same_origin(left: Any, right: Any) -> bool:
    """Whether both are, or show unchanged, one container of one base."""
    base = origin(left)
    return base is not None and base is origin(right)


def origin(value: Any) -> Any:
    """The container of a base that `value` is, or shows unchanged; else None."""
    if isinstance(value, Node):
        return value._base if value._is_unchanged() else None
    return value if isinstance(value, (dict, list)) else None


def _walk(left: Any, right: Any, path: str) -> Iterator[Change]:
    if _surely_same(left, right) or same_origin(left, right):
        return
    if is_map(left) and is_map(right):
        yield from _walk_maps(left, right, path)
    elif is_list(left) and is_list(right):
        yield from _walk_lists(left, right, path)
    elif is_map(left) or is_map(right) or is_list(left) or is_list(right):
        yield Change(path, plain(left), plain(right), "changed")
    elif not _same_leaf(left, right):
        yield Change(path, left, right, "changed")


def _walk_maps(left: Any, right: Any, path: str) -> Iterator[Change]:
    for key in sorted(keys_to_compare(left, right)):
        yield from _walk_key(left, right, key, path)


def _walk_key(left: Any, right: Any, key: str, path: str) -> Iterator[Change]:
    if key in left and key in right:
        mine, yours = peek(left, key), peek(right, key)
        if not _surely_same(mine, yours):
            yield from _walk(mine, yours, join(path, key))
    elif key in left:
        yield Change(join(path, key), plain(peek(left, key)), None, "removed")
    elif key in right:
        yield Change(join(path, key), None, plain(peek(right, key)), "added")


def keys_to_compare(left: Any, right: Any) -> set[str]:
    """Keys at which two mappings may differ: of views of one base, those that were written."""
    if _root(left) is _root(right):
        ours, theirs = _changed(left), _changed(right)
        if ours is not None and theirs is not None:
            return {*ours, *theirs}
    return {*left, *right}


def _root(value: Any) -> Any:
    return value._base if isinstance(value, Node) else value


def _changed(value: Any) -> Collection[Any] | None:
    return value._changed() if isinstance(value, Node) else ()


def _walk_lists(left: Any, right: Any, path: str) -> Iterator[Change]:
    for i in range(max(len(left), len(right))):
        at = join(path, str(i))
        if i >= len(right):
            yield Change(at, plain(peek(left, i)), None, "removed")
        elif i >= len(left):
            yield Change(at, None, plain(peek(right, i)), "added")
        else:
            yield from _walk(peek(left, i), peek(right, i), at)


def peek(value: Any, key: Any) -> Any:
    """What is at a key or position; unlike reading it, this makes no node of a base's part."""
    return value._peek(key) if isinstance(value, Node) else value[key]
