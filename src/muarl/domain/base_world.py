"""The world that a domain declares, before any task, with that of the user's device in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import MuarlError, SpecError
from muarl.json_values import json_problem
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located
from muarl.spec.device import DEVICE, DeviceStateSpec
from muarl.spec.domain import WorldSpec
from muarl.spec.environment import BEGINNING, ENVIRONMENT
from muarl.spec.plugged import PluggedWorld
from muarl.spec.plugin import O, Plugin
from muarl.world import World, plain


def base_world(located: Located[DomainSpec], python: PythonFolder) -> World:
    """The world of a domain.

    Args:
        located: The domain's file.
        python: Its Python.

    Raises:
        SpecError: It cannot be had, or is no JSON.
    """
    spec = located.spec
    beside: dict[str, Any] = {}
    if spec.device is not None and spec.device.world is not None:
        beside[DEVICE] = _document(located, python, spec.device.world, ("device", "world"))
    if spec.world.sql is not None:
        from muarl.spec.sql_seed import load_database
        from muarl.world.sql import SqlWorld

        return SqlWorld(load_database(located), beside)
    if spec.environment is not None:
        beside[ENVIRONMENT] = BEGINNING
    if spec.world.plugin is not None:
        return _plugged(located, spec.world.plugin, beside)
    world = _document(located, python, spec.world, ("world",))
    if beside.keys() & world.keys():
        (key,) = beside
        whose = "`device.world`" if key == DEVICE else "the environment"
        message = f"the world has a key {key!r}, where {whose} lies; name it otherwise"
        raise SpecError([located.problem(("world",), message)])
    return World({**world, **beside})


@dataclass(frozen=True)
class WorldPlugin(Plugin[O]):
    """A kind of world, registered in the group `muarl.worlds`.

    Attributes:
        options: The model of what a spec may say to it.
        make: Makes the world before any task, of options and the domain's folder: a mapping of what JSON
            holds, or a `World` of a class of its own, which must keep the laws of
            `muarl.testing.world_laws`.
    """

    make: Callable[[O, Path], World | Mapping[str, Any]]

    group = "muarl.worlds"


def _plugged(located: Located[DomainSpec], named: PluggedWorld, beside: dict[str, Any]) -> World:
    """The world of a package, and what lies beside it."""

    def problem(message: str) -> SpecError:
        return SpecError([located.problem(("world", "plugin"), f"{named.provided} {message}")])

    try:
        made = named.registered(WorldPlugin).make(named.options, located.path.parent)
        found = json_problem(plain(made)) if isinstance(made, Mapping) else ""
        fork = made.fork() if isinstance(made, World) else None
    except MuarlError:
        raise
    except RAISED as error:  # boundary: the package raises anything
        let_others_pass(error)
        raise problem(f"raised {blame(error)}") from error
    if not isinstance(made, Mapping):
        raise problem(f"made a {type(made).__name__}; the world must be a mapping at the top")
    if found:
        raise problem(f"made a world that is not JSON: {found}")
    if beside.keys() & made.keys():
        raise problem(f"made a world with a key {DEVICE!r}, where `device.world` lies")
    if not isinstance(made, World):
        return World({**made, **beside})
    if type(fork) is not type(made):
        raise problem(
            f"made a {type(made).__name__} whose `fork` gives a {type(fork).__name__}; override `fresh`"
        )
    assert fork is not None  # a world's own
    fork.update(beside)
    return fork


def _document(
    located: Located[DomainSpec],
    python: PythonFolder,
    source: WorldSpec | DeviceStateSpec,
    loc: tuple[str, ...],
) -> dict[str, Any]:
    """What a `world`, which stands at `loc`, says or names."""

    def problem(at: tuple[str, ...], message: str) -> SpecError:
        return SpecError([located.problem((*loc, *at), message)])

    if source.data is not None:
        return source.data
    if source.file is not None:
        path = located.resolve(source.file)
        try:
            text = path.read_text(encoding="utf-8-sig")
            world = json.loads(text, object_pairs_hook=_without_twins)
        except (OSError, ValueError, RecursionError) as error:
            raise problem(("file",), f"{source.file!r} cannot be read: {error}") from error
    else:
        assert source.python is not None  # such a spec holds exactly one source
        world = python.call(source.python, (*loc, "python"))
    whose = "" if source.file is None else f" in {source.file!r}"
    if not isinstance(world, dict):
        raise problem((), f"the world{whose} must be a mapping at the top")
    if found := json_problem(world):
        raise problem((), f"the world{whose} must be JSON: {found}")
    return world


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of a JSON file; of two equal keys JSON would silently keep the last.

    Raises:
        ValueError: A key stands twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = next(key for key in found if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twin!r} stands twice in one mapping")
    return found
