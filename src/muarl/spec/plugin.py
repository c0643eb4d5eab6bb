"""What an installed package provides beside what muarl has: how it registers it, and how it is found.

A package registers a `Plugin` under one of the entry-point groups of `KINDS`. Finding out what is installed
imports nothing; only what is asked for by name is imported.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar

from muarl.authors import RAISED, blame, is_written_by_an_author, let_others_pass
from muarl.errors import PluginError, did_you_mean
from muarl.spec.base import Spec

KINDS = {
    "muarl.users": "user",
    "muarl.tool_servers": "tool server",
    "muarl.worlds": "world",
    "muarl.predicates": "predicate",
    "muarl.policies": "policy",
    "muarl.sinks": "sink",
}
"""Entry-point group to what its plug-ins are."""


class Options(Spec):
    """What a spec says to a plug-in: derive from it, or use it as it is where there is nothing to say.

    A closed, immutable model: what it does not know is an error with line and column. The docstring
    below a field is what editors show. Values are read as strictly as muarl's own: `"3"` is no number.
    """


O = TypeVar("O", bound=Options)


@dataclass(frozen=True)
class Plugin(Generic[O]):
    """What an entry point of a package names; each kind of plug-in derives from it.

    Attributes:
        options: The model of what a spec may say to it.
    """

    options: type[O]
    group: ClassVar[str] = ""


@dataclass(frozen=True)
class Provided:
    """An entry point of an installed package.

    Attributes:
        group: One of `KINDS`.
        name: As specs name it.
        package: The package that provides it.
        version: Of the package.
        point: What to import.
    """

    group: str
    name: str
    package: str
    version: str
    point: EntryPoint

    @property
    def kind(self) -> str:
        """What it is: `user`."""
        return KINDS[self.group]

    @property
    def by(self) -> str:
        """Who provides it: `my-package 0.1`."""
        return f"{self.package} {self.version}"

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r} of {self.by}"

    def load(self) -> Plugin[Any]:
        """Import it.

        Raises:
            PluginError: It cannot be imported, or is no plug-in of its kind.
        """
        is_written_by_an_author(self.point.module)
        try:
            found = self.point.load()
        except RAISED as error:  # boundary: the package raises anything
            let_others_pass(error)
            raise PluginError(f"{self} cannot be imported: {blame(error)}") from error
        if not isinstance(found, Plugin) or found.group != self.group:
            raise PluginError(
                f"{self}: its entry point {self.point.value!r} names a {type(found).__name__}; in the "
                f"group {self.group} it must name a muarl.plugins.{_class_name(self.group)}"
            )
        if not (isinstance(found.options, type) and issubclass(found.options, Options)):
            shown = getattr(found.options, "__name__", repr(found.options))
            raise PluginError(
                f"{self}: its options are {shown}, which is no subclass of muarl.plugins.Options"
            )
        return found


def _class_name(group: str) -> str:
    return "".join(word.capitalize() for word in KINDS[group].split()) + "Plugin"


def installed(group: str) -> dict[str, tuple[Provided, ...]]:
    """Name to what provides it, of all packages installed; more than one is a clash. Imports none."""
    return _installed(group, tuple(sys.path))


@cache
def _installed(group: str, path: tuple[str, ...]) -> dict[str, tuple[Provided, ...]]:
    del path  # which packages are installed follows from it
    found: dict[str, tuple[Provided, ...]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        dist = point.dist
        name, version = (
            (dist.name, dist.version) if dist is not None else ("an unknown package", "")
        )
        one = Provided(group, point.name, name, version, point)
        found[point.name] = (*found.get(point.name, ()), one)
    return found


def all_installed() -> list[Provided]:
    """Whatever any package provides, by group and name. Imports none."""
    return [one for group in KINDS for many in installed(group).values() for one in many]


def problems_of_plugins() -> list[str]:
    """What is wrong with plug-ins that are installed. Imports them all."""
    found = []
    for group in KINDS:
        for name in installed(group):
            try:
                provided(group, name).load()
            except PluginError as error:
                found.append(str(error))
    return found


def provided(group: str, name: str) -> Provided:
    """Who provides a plug-in.

    Raises:
        PluginError: Nobody does, or more than one package.
    """
    there = installed(group)
    found = there.get(name, ())
    if len(found) == 1:
        return found[0]
    kind = KINDS[group]
    if found:
        both = " and ".join(one.by for one in found)
        raise PluginError(
            f"the {kind} {name!r} is provided twice, by {both}; uninstall one of them"
        )
    for other in KINDS:
        if name in installed(other):
            raise PluginError(f"{installed(other)[name][0]} is no {kind}")
    have = ", ".join(f"{one} ({who.by})" for one, (who, *_) in there.items())
    raise PluginError(
        f"no installed package provides a {kind} {name!r}{did_you_mean(name, there)}; "
        + (f"installed: {have}" if have else f"none provides any (entry points {group})")
    )
