"""A dialogue's world, and how whole worlds are forked and patched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from muarl.world.compare import equal, plain
from muarl.world.nodes import MapNode, copied


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

    @property
    def unordered(self) -> Mapping[str, Collection[str]]:
        """Mappings at its top whose keys do not count in `canonical_diff`; to fields, likewise."""
        return {}

    @property
    def schema(self) -> Mapping[str, str]:
        """Tables, indexes and views behind it, by name, each as the SQL that makes it."""
        return {}

    def fork(self, patch: Mapping[str, Any] | None = None) -> World:
        """A new world with the same content, and `patch` merged over it.

        The base is shared; of this world's own nodes those that were written are copied.

        Args:
            patch: Merged deeply: mappings are merged, everything else replaces.
        """
        fork = self.fresh()
        copied(self, fork)
        if patch:
            merge(fork, patch)
        return fork

    def fresh(self) -> World:
        """A world on the same base in which nothing was written.

        What a class derived from this one adds of its own, beside methods, is handed on here.
        """
        return type(self)(self._base)

    def save(self, path: Path) -> None:
        """Write it as a JSON file.

        Raises:
            FileExistsError: There is one.
        """
        with path.open("xb") as file:
            file.write(msgspec.json.encode(plain(self)))

    def restored(self, path: Path) -> World:
        """The world that `save` wrote; what it shares with this one is held once.

        Raises:
            msgspec.DecodeError: The file holds none.
        """
        world = self.fork()
        overwrite(world, msgspec.json.decode(path.read_bytes(), type=dict[str, Any]))
        return world


class WorldProxy(World):
    """Stands for the world, or part of one, that `resolve` returns, asked anew at every use.

    It holds nothing itself: reading, writing, forking, comparing and serialising it are the same
    as doing so with the world it stands for.
    """

    __slots__ = ("_resolve",)

    def __init__(self, resolve: Callable[[], MapNode]) -> None:
        self._resolve = resolve

    @property
    def behind(self) -> MapNode:
        """The world it stands for now."""
        return self._resolve()

    def fresh(self) -> World:
        behind = self._resolve()
        return behind.fresh() if isinstance(behind, World) else World(behind._base)

    @property
    def _base(self) -> Any:
        return self._resolve()._base

    @property
    def _over(self) -> dict[str, Any]:  # type: ignore[override]
        return self._resolve()._over

    @property
    def _gone(self) -> set[str]:  # type: ignore[override]
        return self._resolve()._gone


def merge(into: MapNode, patch: Mapping[str, Any]) -> None:
    """Merge mappings deeply; everything else replaces."""
    for key, value in patch.items():
        present = into.get(key)
        if isinstance(value, Mapping) and isinstance(present, MapNode):
            merge(present, value)
        else:
            into[key] = value


def overwrite(world: MapNode, state: Mapping[str, Any]) -> None:
    """Give `world` the content of `state`; what is equal already is not written."""
    for key in [key for key in world if key not in state]:
        del world[key]
    for key, value in state.items():
        put(world, key, value)


def put(world: MapNode, key: str, value: Any) -> None:
    """Give `world` a value at a key; what is equal already is not written."""
    present = world.get(key)
    if isinstance(value, Mapping) and isinstance(present, MapNode):
        overwrite(present, value)
    elif key not in world or not equal(present, value):
        world[key] = value
