"""What keeps the world of the user's device in step with the agent's: declared copies, and Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import MuarlError, SyncError
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located
from muarl.spec.device import SyncSpec
from muarl.world import Key, MapNode, World, equal, lookup, place, plain, split

Sync = Callable[[World], None]
"""Brings a world in step, in place."""

_SLOT = re.compile(r"\{([^{}]*)\}")


def synchronisation(
    located: Located[DomainSpec], steps: Sequence[SyncSpec], python: PythonFolder
) -> Sync:
    """What brings a world in step, as the domain declares it.

    It raises SyncError, with the line of the domain's file or of its Python; SpecError where that
    cannot be imported.
    """

    def sync(world: World) -> None:
        for index, step in enumerate(steps):
            loc = ("device", "sync", index)
            try:
                if step.python is not None:
                    python.load(step.python, (*loc, "python"))(world)
                else:
                    assert step.from_ is not None  # SyncSpec has one kind
                    assert step.to is not None
                    _copy(world, step.from_, step.to)
            except MuarlError:
                raise
            except _NoPlace as problem:
                raise SyncError(str(located.problem(loc, f"sync: {problem}"))) from None
            except RAISED as error:  # boundary: the author's code raises anything
                let_others_pass(error)
                message = f"sync: {step.python} raised {blame(error)}"
                raise SyncError(str(located.problem((*loc, "python"), message))) from error

    return sync


class _NoPlace(Exception):
    """A path of a declared copy leads nowhere."""


def _copy(world: World, source: str, target: str) -> None:
    value = _found(world, _resolved(world, source))
    try:
        holder, key = place(world, _resolved(world, target))
    except KeyError as missing:
        message = f"nothing can be put at {target!r}: {missing.args[0]!r} is not in the world"
        raise _NoPlace(message) from None
    new = isinstance(holder, MapNode) and key not in holder
    if new or not equal(holder[key], value):
        holder[key] = plain(value)


def _resolved(world: World, path: str) -> list[str]:
    """The parts of a path; one with a slot is the key that it stands for, dots and all."""
    slots, parts = _parsed(path)

    def named(slot: re.Match[str]) -> str:
        at = slots[int(slot[1])]
        key: Any = _found(world, split(at))
        if isinstance(key, (str, int)) and not isinstance(key, bool):
            return str(key)
        raise _NoPlace(f"{at!r} is {plain(key)!r}, which names nothing, in {path!r}")

    return [Key(_SLOT.sub(named, part)) if _SLOT.search(part) else part for part in parts]


@cache
def _parsed(path: str) -> tuple[Sequence[str], Sequence[str]]:
    """The slots of a declared path, and its parts with the numbers of slots in them."""
    slots: list[str] = _SLOT.findall(path)
    numbers = iter(range(len(slots)))
    return slots, split(_SLOT.sub(lambda _: f"{{{next(numbers)}}}", path))


def _found(world: World, parts: Sequence[str]) -> Any:
    try:
        return lookup(world, parts)
    except KeyError as missing:
        raise _NoPlace(f"{missing.args[0]!r} is not in the world") from None
