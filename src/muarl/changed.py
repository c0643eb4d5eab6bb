"""What each call changes in a world that others may change as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from muarl.world import Change, World, diff


class Changed:
    """Watches a world while calls are made in it.

    Calls that are made at once share what changes meanwhile: it is told once, of whichever ends first.
    What changes while no call is made is nobody's.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._before = world
        self._under_way = 0

    @contextmanager
    def by_call(self) -> Iterator[list[Change]]:
        """Around one call; the list has what it changed as soon as it has ended."""
        if not self._under_way:
            self._before = self._world.fork()
        self._under_way += 1
        found: list[Change] = []
        try:
            yield found
        finally:
            self._under_way -= 1
            found += diff(self._before, self._world)
            if self._under_way and found:
                self._before = self._world.fork()
