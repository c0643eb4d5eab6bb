"""Worlds: the mutable state behind a dialogue's tools.

A world is a JSON document shared by all dialogues (the base) plus the writes of one dialogue (the
overlay). Forking copies nothing: a node of the overlay is created when a tool first touches it, and
the base is never written. Equality is canonical: key order is free and `3 == 3.0`; `True` is not
`1`. A difference is explained path by path.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from typing import Any

import msgspec
from pydantic_core import SchemaSerializer, core_schema

Json = Any
"""None, bool, int, float, str, or a list or str-keyed dict of such."""


class Change(msgspec.Struct, frozen=True):
    """One difference between two worlds.

    Attributes:
        path: Dotted path, `orders.W4173.status`.
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


class _Node:
    """What map and list nodes share; pydantic (and so MCP results) serialises nodes as plain data."""

    __slots__ = ()
    __pydantic_serializer__ = SchemaSerializer(
        core_schema.any_schema(
            serialization=core_schema.plain_serializer_function_ser_schema(lambda node: plain(node))
        )
    )

    def __repr__(self) -> str:
        return repr(plain(self))

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    __hash__ = None  # type: ignore[assignment]


class MapNode(_Node, MutableMapping[str, Any]):
    """A mapping of a world: reads fall through to the base, writes stay in this fork."""

    __slots__ = ("_base", "_gone", "_over")

    def __init__(self, base: Mapping[str, Any]) -> None:
        self._base = base
        self._over: dict[str, Any] = {}
        self._gone: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if key in self._over:
            return self._over[key]
        if key in self._gone:
            raise KeyError(key)
        value = self._base[key]
        if isinstance(value, (dict, list)):
            value = self._over[key] = _node(value)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._over[key] = _adopt(value)
        self._gone.discard(key)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._over.pop(key, None)
        if key in self._base:
            self._gone.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self._over or (key in self._base and key not in self._gone)

    def __iter__(self) -> Iterator[str]:
        for key in self._base:
            if key not in self._gone:
                yield key
        for key in list(self._over):
            if key not in self._base:
                yield key

    def __len__(self) -> int:
        fresh = sum(key not in self._base for key in self._over)
        return len(self._base) - len(self._gone) + fresh


class ListNode(_Node, MutableSequence[Any]):
    """A list of a world; it copies the list's own slots on the first touch, not their contents."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Sequence[Any]) -> None:
        self._base = base
        self._own: list[Any] | None = None

    def _mine(self) -> list[Any]:
        if self._own is None:
            self._own = [_node(v) if isinstance(v, (dict, list)) else v for v in self._base]
        return self._own

    def __getitem__(self, index: Any) -> Any:
        return self._mine()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._mine()[index] = [_adopt(v) for v in value]
        else:
            self._mine()[index] = _adopt(value)

    def __delitem__(self, index: Any) -> None:
        del self._mine()[index]

    def __len__(self) -> int:
        return len(self._base if self._own is None else self._own)

    def insert(self, index: int, value: Any) -> None:
        self._mine().insert(index, _adopt(value))


def _node(value: Any) -> Any:
    """Wrap a container of a base, which nobody may write."""
    return MapNode(value) if isinstance(value, dict) else ListNode(value)


def _adopt(value: Any) -> Any:
    """Take a caller's value into the world, as a copy: the caller keeps no way to write it."""
    if isinstance(value, (Mapping, list, tuple, ListNode)):
        return _node(plain(value))
    return value


def plain(value: Any) -> Json:
    """Copy a node, or anything made of mappings and sequences, into plain JSON data."""
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in value}
    if isinstance(value, ListNode):
        return [plain(v) for v in (value._base if value._own is None else value._own)]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class World(MapNode):
    """One dialogue's world: a document it can write without anyone else seeing it.

    Example:
        >>> base = World({"orders": {"W1": {"status": "pending"}}})
        >>> mine, yours = base.fork(), base.fork()
        >>> mine["orders"]["W1"]["status"] = "cancelled"
        >>> yours["orders"]["W1"]["status"]
        'pending'
        >>> [str(change) for change in diff(base, mine)]
        ["orders.W1.status: 'pending' -> 'cancelled'"]
    """

    __slots__ = ()

    def fork(self, patch: Mapping[str, Any] | None = None) -> World:
        """A new world with the same content, and `patch` merged over it.

        The base is shared; of this world's own writes only the touched nodes are copied.

        Args:
            patch: Merged deeply: mappings are merged, everything else replaces.
        """
        fork = World(self._base)
        fork._over = {key: _copy(value) for key, value in self._over.items()}
        fork._gone = set(self._gone)
        if patch:
            _merge(fork, patch)
        return fork


class WorldProxy(World):
    """Stands for the world that `resolve` returns, asked anew at every use.

    It holds nothing itself: reading, writing, forking, comparing and serialising it are the same
    as doing so with the world it stands for.
    """

    __slots__ = ("_resolve",)

    def __init__(self, resolve: Callable[[], World]) -> None:
        self._resolve = resolve

    @property
    def _base(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self._resolve()._base

    @property
    def _over(self) -> dict[str, Any]:  # type: ignore[override]
        return self._resolve()._over

    @property
    def _gone(self) -> set[str]:  # type: ignore[override]
        return self._resolve()._gone


def _copy(value: Any) -> Any:
    """Copy what a fork holds of its own; bases stay shared."""
    if isinstance(value, MapNode):
        copy = MapNode(value._base)
        copy._over = {key: _copy(v) for key, v in value._over.items()}
        copy._gone = set(value._gone)
        return copy
    if isinstance(value, ListNode):
        twin = ListNode(value._base)
        twin._own = None if value._own is None else [_copy(v) for v in value._own]
        return twin
    return value


def _merge(into: MapNode, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        present = into.get(key)
        if isinstance(value, Mapping) and isinstance(present, MapNode):
            _merge(present, value)
        else:
            into[key] = value


def overwrite(world: MapNode, state: Mapping[str, Any]) -> None:
    """Give `world` the content of `state`; what is equal already is not written."""
    for key in [key for key in world if key not in state]:
        del world[key]
    for key, value in state.items():
        present = world.get(key)
        if isinstance(value, Mapping) and isinstance(present, MapNode):
            overwrite(present, value)
        elif key not in world or not equal(present, value):
            world[key] = value


def lookup(world: Any, path: str) -> Any:
    """The value at a dotted path (list positions are numbers).

    Raises:
        KeyError: Names the first part of the path that is not there.
    """
    value = world
    walked: list[str] = []
    for part in path.split("."):
        walked.append(part)
        try:
            value = value[int(part)] if isinstance(value, (list, ListNode)) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise KeyError(".".join(walked)) from None
    return value


def _is_map(value: Any) -> bool:
    return isinstance(value, (dict, MapNode))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, ListNode))


def equal(left: Any, right: Any) -> bool:
    """Canonical equality of two worlds or values."""
    return next(_walk(left, right, ""), None) is None


def diff(left: Any, right: Any) -> list[Change]:
    """Every difference from `left` to `right`, in path order."""
    return sorted(_walk(left, right, ""), key=lambda change: change.path)


def _same_leaf(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _untouched(left: Any, right: Any) -> bool:
    """True when two nodes stand over the same base and neither holds anything of its own."""
    return (
        isinstance(left, MapNode)
        and isinstance(right, MapNode)
        and left._base is right._base
        and not (left._over or right._over or left._gone or right._gone)
    )


def _walk(left: Any, right: Any, path: str) -> Iterator[Change]:
    if left is right or _untouched(left, right):
        return
    if _is_map(left) and _is_map(right):
        yield from _walk_maps(left, right, path)
    elif _is_list(left) and _is_list(right):
        for i in range(max(len(left), len(right))):
            at = f"{path}.{i}" if path else str(i)
            if i >= len(right):
                yield Change(at, plain(left[i]), None, "removed")
            elif i >= len(left):
                yield Change(at, None, plain(right[i]), "added")
            else:
                yield from _walk(left[i], right[i], at)
    elif _is_map(left) or _is_map(right) or _is_list(left) or _is_list(right):
        yield Change(path, plain(left), plain(right), "changed")
    elif not _same_leaf(left, right):
        yield Change(path, left, right, "changed")


def _walk_maps(left: Any, right: Any, path: str) -> Iterator[Change]:
    keys: Any
    if isinstance(left, MapNode) and isinstance(right, MapNode) and left._base is right._base:
        # Over one base only what either side touched can differ.
        keys = {**left._over, **right._over, **dict.fromkeys([*left._gone, *right._gone])}
    else:
        keys = {**dict.fromkeys(left), **dict.fromkeys(right)}
    for key in keys:
        at = f"{path}.{key}" if path else str(key)
        if key not in left and key not in right:
            continue
        if key not in right:
            yield Change(at, plain(left[key]), None, "removed")
        elif key not in left:
            yield Change(at, None, plain(right[key]), "added")
        else:
            yield from _walk(left[key], right[key], at)
