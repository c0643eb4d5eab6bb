"""Mappings and lists over a shared base: reads fall through to it, writes stay here."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Self

from muarl.json_values import json_problem
from muarl.world.compare import Node, is_list, plain


class MapNode(Node, MutableMapping[str, Any]):
    """A mapping of a world: reads fall through to the base, writes stay in this fork.

    What is written is taken in as a copy. `copy` and `|` give a dict, shallow like a dict's own.
    """

    __slots__ = ("_base", "_gone", "_over")

    def __init__(self, base: Mapping[str, Any]) -> None:
        self._base = base
        self._over: dict[str, Any] = {}
        self._gone: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        value = self._peek(key)
        if isinstance(value, (dict, list)):
            value = self._over[key] = _node(value)
        return value

    def _peek(self, key: str) -> Any:
        if key in self._over:
            return self._over[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def _holds_something(self) -> bool:
        return bool(self._over or self._gone)

    def _changed(self) -> set[str]:
        return {*_changed_items(self._over, self._base.get), *self._gone}

    def __setitem__(self, key: str, value: Any) -> None:
        self._over[_key(key)] = _adopt(value)
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
            if key not in self._base and key in self._over:
                yield key

    def __len__(self) -> int:
        fresh = sum(key not in self._base for key in self._over)
        return len(self._base) - len(self._gone) + fresh

    def setdefault(self, key: str, default: Any = None) -> Any:
        # The inherited one would return the caller's own value, whose writes the world never sees.
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        self._over.clear()
        self._gone.update(self._base)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    __copy__ = copy

    def __or__(self, other: Any) -> dict[str, Any]:
        return dict(self) | dict(other) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Any) -> dict[str, Any]:
        return dict(other) | dict(self) if isinstance(other, Mapping) else NotImplemented

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


class ListNode(Node, MutableSequence[Any]):
    """A list of a world: like a mapping, until an element moves; then it gets slots of its own.

    `copy`, slices and `+` give a list, shallow like a list's own.
    """

    __slots__ = ("_base", "_over", "_own")

    def __init__(self, base: Sequence[Any]) -> None:
        self._base = base
        self._over: dict[int, Any] = {}
        self._own: list[Any] | None = None

    def _mine(self) -> list[Any]:
        """The slots; containers in them that are no nodes are the base's."""
        if self._own is None:
            self._own = [self._over.get(i, value) for i, value in enumerate(self._base)]
            self._over = {}
        return self._own

    def _slots(self) -> MutableSequence[Any] | dict[int, Any]:
        """Where an element is kept that this fork touches."""
        return self._over if self._own is None else self._own

    def _peek(self, index: int) -> Any:
        if self._own is not None:
            return self._own[index]
        return self._over[index] if index in self._over else self._base[index]

    def _holds_something(self) -> bool:
        return bool(self._over) or self._own is not None

    def _changed(self) -> dict[int, Any] | None:
        return _changed_items(self._over, self._base.__getitem__) if self._own is None else None

    def _position(self, index: Any) -> int:
        position = operator.index(index)
        position += len(self) if position < 0 else 0
        if not 0 <= position < len(self):
            raise IndexError("list index out of range")
        return position

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = self._position(index)
        value = self._peek(index)
        if isinstance(value, (dict, list)):
            value = self._slots()[index] = _node(value)
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._mine()[index] = [_adopt(v) for v in value]
        else:
            self._slots()[self._position(index)] = _adopt(value)

    def __delitem__(self, index: Any) -> None:
        del self._mine()[index]

    def __len__(self) -> int:
        return len(self._base if self._own is None else self._own)

    def insert(self, index: int, value: Any) -> None:
        self._mine().insert(index, _adopt(value))

    def reverse(self) -> None:
        self._mine()[:] = list(self)[::-1]

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        self._mine()[:] = sorted(self, key=key, reverse=reverse)

    def copy(self) -> list[Any]:
        return list(self)

    __copy__ = copy

    def __add__(self, other: Any) -> list[Any]:
        return list(self) + list(other) if is_list(other) else NotImplemented

    def __radd__(self, other: Any) -> list[Any]:
        return list(other) + list(self) if is_list(other) else NotImplemented


def _node(value: Any) -> Any:
    """Wrap a container of a base, which nobody may write."""
    return MapNode(value) if isinstance(value, dict) else ListNode(value)


def _changed_items(over: dict[Any, Any], base: Callable[[Any], Any]) -> dict[Any, Any]:
    """What of `over` is more than a node that shows the base's value as it is."""
    return {key: value for key, value in over.items() if not _shows(value, base(key))}


def _shows(value: Any, base: Any) -> bool:
    """Whether `value` is a node over `base` in which nothing was written."""
    if isinstance(value, MapNode):
        # Most nodes were only looked into, at plain values.
        return value._base is base and not value._gone and (not value._over or not value._changed())
    return isinstance(value, ListNode) and value._base is base and value._is_unchanged()


def _key(key: Any) -> str:
    _check({key: None})
    return str(key)


def _check(value: Any) -> None:
    problem = json_problem(value)
    if problem:
        raise TypeError(f"a world holds JSON only: {problem}")


def _adopt(value: Any) -> Any:
    """Take a caller's value into the world, as a copy: the caller keeps no way to write it."""
    _check(value)
    if isinstance(value, Mapping) or is_list(value):
        return _node(plain(value))
    return value


def copied(node: MapNode, into: MapNode) -> None:
    """Give the fresh node `into` what was written in `node`; their base stays shared."""
    into._over = _copies(node._over, node._base.get)
    into._gone = set(node._gone)


def _copies(over: dict[Any, Any], base: Callable[[Any], Any]) -> dict[Any, Any]:
    """Copies of what was written; nodes that were only read are left out."""
    copies: dict[Any, Any] = {}
    for key, value in over.items():
        if isinstance(value, (MapNode, ListNode)):
            value = _copy(value)
            if not value._holds_something() and value._base is base(key):
                continue
        copies[key] = value
    return copies


def _copy(value: Any) -> Any:
    if isinstance(value, MapNode):
        copy = MapNode(value._base)
        if value._holds_something():
            copied(value, copy)
        return copy
    if isinstance(value, ListNode):
        twin = ListNode(value._base)
        if value._own is not None:
            twin._own = [_copy(v) for v in value._own]
        elif value._over:
            twin._over = _copies(value._over, value._base.__getitem__)
        return twin
    return value
