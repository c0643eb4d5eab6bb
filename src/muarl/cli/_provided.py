"""Who provides what: the plug-ins that a domain and a run name, and those that are only installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muarl.cli._printable import in_one_line
from muarl.spec import Located, TaskSpec
from muarl.spec.plugged import PluggedPredicate, plugged_in
from muarl.spec.plugin import Provided, all_installed

Named = Mapping[Provided, str]
"""A plug-in to the first place that names it; "" where none does."""


def named_plugins(files: Iterable[Located[Any]], tasks: Iterable[TaskSpec] = ()) -> Named:
    """All plug-ins that are installed, and where they are named.

    Args:
        files: The spec files that are looked at.
        tasks: Tasks that no file holds.
    """
    found: dict[Provided, str] = {}
    for file in files:
        for loc, one in plugged_in(file.spec):
            problem = file.problem(loc, "")
            found.setdefault(one.provided, f"{problem.path}:{problem.line}:{problem.column}")
    for task in tasks if PluggedPredicate.names() else ():
        for _, one in plugged_in([task.reward, task.training_reward, task.metrics]):
            found.setdefault(one.provided, f"task {task.id}")
    return found | {one: "" for one in all_installed() if one not in found}


def in_words(named: Named) -> Iterator[str]:
    """A line for each that is named, and one for all others."""
    for one, place in named.items():
        if place:
            yield in_one_line(f"  {one.kind} {one.name!r} is provided by {one.by} ({place})")
    others = [f"{one.kind} {one.name!r} ({one.by})" for one, place in named.items() if not place]
    if others:
        yield in_one_line(f"  also installed: {', '.join(others)}")


def as_json(named: Named) -> Sequence[dict[str, Any]]:
    """The same as data; `at` is null for those that nothing names."""
    return [
        {
            "kind": one.kind,
            "name": one.name,
            "package": one.package,
            "version": one.version,
            "at": place or None,
        }
        for one, place in named.items()
    ]
