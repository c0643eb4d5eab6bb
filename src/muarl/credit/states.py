"""The world before each turn, as a key, from the record alone.

Episodes of one task begin in one world, so two of their states are the same if the same places of it
hold other values than at the start, and the same ones. A change that is taken back leaves no trace,
and it does not matter in how many steps a place was changed. `3` and `3.0` are the same, `1` and `True`
are not. Lists that a domain declares unordered are compared in order here.

A container is one entry of its own beside those of what is in it:

    added at `orders.K1`: {"lines": [7]}   ->   orders.K1 {}, orders.K1.lines [], orders.K1.lines.0 7
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from muarl.record import Episode
from muarl.world import Change
from muarl.world.compare import join

Leaf = tuple[Any, ...]
State = frozenset[tuple[str, Leaf]]
"""What is other than at the start: place and value."""

_ABSENT: Leaf = ("absent",)


class _Net:
    """What changes amount to."""

    def __init__(self) -> None:
        self._first: dict[str, Leaf] = {}
        self._now: dict[str, Leaf] = {}

    def take(self, changes: Iterable[Change]) -> None:
        for change in changes:
            before = {} if change.kind == "added" else dict(_leaves(change.path, change.before))
            after = {} if change.kind == "removed" else dict(_leaves(change.path, change.after))
            for path in before.keys() | after.keys():
                self._first.setdefault(path, before.get(path, _ABSENT))
                self._now[path] = after.get(path, _ABSENT)

    def state(self) -> State:
        return frozenset(
            (path, leaf) for path, leaf in self._now.items() if leaf != self._first[path]
        )


def states_before_turns(episode: Episode) -> list[State]:
    """The state in which each turn began; equal ones compare equal.

    What a tool server keeps of its own is read after a dialogue, and is in none of them.
    """
    net = _Net()
    net.take(episode.opening.changes)
    found: list[State] = []
    for turn in episode.turns:
        found.append(net.state())
        net.take(turn.changes)
        if turn.reply is not None:
            net.take(turn.reply.changes)
    return found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Leaf]]:
    match value:
        case dict():
            yield path, ("{}",)
            for key, below in value.items():
                yield from _leaves(join(path, key), below)
        case list() | tuple():
            yield path, ("[]",)
            for place, below in enumerate(value):
                yield from _leaves(join(path, str(place)), below)
        case bool():
            yield path, ("truth", value)
        case _:
            yield path, ("value", value)
