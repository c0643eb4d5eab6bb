"""The hashes by which the official evaluators tell whether two databases are the same.

Both see the types of numbers: 17 is not 17.0. They are of texts of millions of characters, of which a
dialogue changes a few hundred; so the text of what a world shares with its base is kept.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from muarl.world import plain
from muarl.world.compare import is_map, origin, peek


class DatabaseHash(ABC):
    """One of the two hashes, for the worlds of one base.

    A key of the database that begins with `_` is ours, and no part of upstream's.

    Example:
        >>> TAU2().of({"b": 1, "a": {"x": 1.0}}) == hashlib.sha256(b'{"a": {"x": 1.0}, "b": 1}').hexdigest()
        True
    """

    def __init__(self) -> None:
        # The container is kept beside its text, so that no other object gets its id.
        self._kept: dict[int, tuple[Any, str]] = {}

    def of(self, db: Any) -> str:
        """The hash of a database: a world, a part of one, or plain JSON."""
        return hashlib.sha256(self._text(db, depth=0).encode()).hexdigest()

    def _text(self, value: Any, depth: int) -> str:
        base = origin(value)
        if base is not None and id(base) in self._kept:
            return self._kept[id(base)][1]
        if is_map(value) and depth < _TABLES:
            keys = sorted(key for key in value if depth or not key.startswith("_"))
            text = self._join((key, self._text(peek(value, key), depth + 1)) for key in keys)
        else:
            text = self._whole(plain(value))
        if base is not None and depth:
            self._kept[id(base)] = (base, text)
        return text

    @abstractmethod
    def _join(self, items: Iterable[tuple[str, str]]) -> str:
        """The text of a mapping, of the texts of what it holds."""

    @abstractmethod
    def _whole(self, value: Any) -> str:
        """The text of plain JSON."""


_TABLES = 2
"""Levels that are put together from kept texts: the database, and its tables."""


class TAU1(DatabaseHash):
    """SHA-256 of the database as nested sorted tuples, as Python writes them."""

    def _join(self, items: Iterable[tuple[str, str]]) -> str:
        texts = [f"({key!r}, {text})" for key, text in items]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def _whole(self, value: Any) -> str:
        return str(_tuples(value))


class TAU2(DatabaseHash):
    """SHA-256 of the database as JSON with sorted keys."""

    def _join(self, items: Iterable[tuple[str, str]]) -> str:
        return "{" + ", ".join(f"{json.dumps(key)}: {text}" for key, text in items) + "}"

    def _whole(self, value: Any) -> str:
        return json.dumps(value, sort_keys=True, default=str)


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _tuples(value[key])) for key in sorted(value))
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
