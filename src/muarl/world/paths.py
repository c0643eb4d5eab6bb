"""Dotted paths: from the name of a place in a world to what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from muarl.world.compare import is_list, is_map, join

_IN_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"(?=\.|$)', re.DOTALL)


class Key(str):
    """A part of a path that is one whole key or position, whatever dots are in it."""

    __slots__ = ()


def split(path: str) -> list[str]:
    """The parts of a dotted path, which `join` puts together again.

    Returns:
        What stands between dots; of a part in quotes, the key that they hold.

    Example:
        >>> split('prices."v1.2".0')
        ['prices', 'v1.2', '0']
    """
    parts: list[str] = []
    at = 0
    while at <= len(path):
        key = _in_quotes(path, at)
        if key is None:
            end = path.find(".", at)
            end = len(path) if end < 0 else end
            parts.append(path[at:end])
        else:
            end = at + len(key[0])
            parts.append(key[1])
        at = end + 1
    return parts


def lookup(world: Any, path: str | Sequence[str]) -> Any:
    """The value at a path, dotted or in parts; list positions are numbers.

    A key may itself hold dots: of the keys that parts can mean together, the shortest counts. A part
    in quotes, and a `Key`, is one key.

    Raises:
        KeyError: Names the path as far as it could be walked, and the part that is not there.
    """
    value, walked, parts = world, 0, split(path) if isinstance(path, str) else path
    while walked < len(parts):
        step = _step(value, parts, walked)
        if step is None:
            raise KeyError(_shown(parts[: walked + 1]))
        key, walked = step
        value = value[key]
    return value


def place(world: Any, parts: Sequence[str]) -> tuple[Any, str | int]:
    """Where a value is put: the container, and its key or position there.

    What is there already counts before a new key, which the last part of a path may be.

    Raises:
        KeyError: As of `lookup`.
    """
    holder, walked = world, 0
    while step := _step(holder, parts, walked):
        key, walked = step
        if walked == len(parts):
            return holder, key
        holder = holder[key]
    if walked == len(parts) - 1 and is_map(holder):
        return holder, str(parts[-1])
    raise KeyError(_shown(parts[: walked + 1]))


def _step(value: Any, parts: Sequence[str], walked: int) -> tuple[str | int, int] | None:
    """Where the next parts of a path lead: a key, and how many parts are walked then."""
    if walked == len(parts):
        return None
    if is_list(value):
        part = parts[walked]
        return (int(part), walked + 1) if part.isdecimal() and int(part) < len(value) else None
    if is_map(value):
        for end in range(walked + 1, len(parts) + 1):
            together = parts[walked:end]
            if len(together) > 1 and any(isinstance(part, Key) for part in together):
                return None
            key = ".".join(together)
            if key in value:
                return key, end
    return None


def _in_quotes(path: str, at: int) -> tuple[str, Key] | None:
    match = _IN_QUOTES.match(path, at)
    try:
        return match and (match[0], Key(json.loads(match[0])))
    except ValueError:
        return None


def _shown(parts: Sequence[str]) -> str:
    return ".".join(join("", part) if "." in part else part for part in parts)
