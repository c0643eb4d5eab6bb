"""What predicates name, and there is none of: arguments of tools, places in worlds.

A predicate that names what never is holds always, or never: a slip of the pen would watch over nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import GoldRun
from muarl.errors import did_you_mean
from muarl.messages import ToolSpec
from muarl.spec import DomainSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.spec.finding import unknown
from muarl.spec.predicate import Loc, PredicateSpec
from muarl.world import World
from muarl.world.compare import is_map
from muarl.world.paths import lookup, split

_FIELD = re.compile(r"[A-Za-z_]+")
"""A name of a field, and not of one record among many."""

Tools = Mapping[Who, Mapping[str, ToolSpec]]
"""Side to its tools by name."""


def predicates_of(
    spec: DomainSpec | TaskSpec,
) -> tuple[tuple[str, Sequence[PredicateSpec] | None], ...]:
    """Field of a domain or a task, to the predicates that stand there."""
    return (
        ("reward", spec.reward),
        ("training_reward", spec.training_reward),
        ("metrics", spec.metrics),
    )


def argument_names(
    predicates: Sequence[PredicateSpec], tools: Tools, writes: Sequence[str]
) -> Iterator[tuple[Loc, str]]:
    """Arguments in predicates that their tools do not take: where, and what to say.

    Args:
        predicates: The predicates.
        tools: All that there are; a predicate that names another is somebody else's finding.
        writes: The domain's, which `preceded` means if it names none.
    """
    for index, predicate in enumerate(predicates):
        for below, part in predicate.walk():
            at = (index, *below, part.kind)
            called = part.called or part.never_called
            if called is not None and called.tool in tools[called.by]:
                tool = tools[called.by][called.tool]
                for name, message in unknown_arguments(tool, called.arguments):
                    yield (*at, "arguments", name), message
            if part.preceded is not None:
                later = [
                    tools["agent"][name]
                    for name in part.preceded.tools or writes
                    if name in tools["agent"]
                ]
                for position, name in enumerate(part.preceded.same):
                    wrong = [dict(unknown_arguments(tool, [name])) for tool in later]
                    if later and all(wrong):
                        yield (*at, "same", position), wrong[0][name]


def unknown_arguments(
    tool: ToolSpec, arguments: Mapping[str, Any] | Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Arguments that a tool's schema does not know; most servers would leave them out silently."""
    known = arguments_of(tool)
    for name in arguments:
        if known is not None and name not in known:
            yield name, f"{unknown('argument', name, known)} (of tool {tool.name!r})"


def arguments_of(tool: ToolSpec) -> list[str] | None:
    """Arguments that a tool's schema knows; None where it takes others, too."""
    known = tool.parameters.get("properties")
    if not isinstance(known, dict) or tool.parameters.get("additionalProperties"):
        return None
    return None if "patternProperties" in tool.parameters else list(known)


def path_findings(subject: Subject, runs: Mapping[str, GoldRun]) -> Iterator[ProofFinding]:
    """Paths of `world` predicates that lead nowhere, in no task's world before or after its gold calls.

    What only a mistake would make is not there either. So a path counts as misspelt where the world has
    no such part at all, or has a field of nearly that name.

    Args:
        subject: The domain.
        runs: Task to its gold run.
    """
    whole = [world for run in runs.values() for world in (run.initial, run.world)]
    for loc, path in _paths(subject.domain.spec):
        if message := _misspelt(path, whole):
            yield subject.about(Check.NAMES, loc, message)
    for task in subject.all_tasks():
        if (run := runs.get(task.id)) is None:
            continue
        for loc, path in _paths(task):
            if message := _misspelt(path, [run.initial, run.world]):
                yield subject.about_task(Check.NAMES, task, loc, message)


def _paths(spec: DomainSpec | TaskSpec) -> Iterator[tuple[Loc, str]]:
    for field, predicates in predicates_of(spec):
        for index, predicate in enumerate(predicates or ()):
            for below, part in predicate.walk():
                if part.world is not None:
                    yield (field, index, *below, "world", "path"), part.world.path
                if part.scaled is not None:
                    yield (field, index, *below, "scaled", "path"), part.scaled.path


def _misspelt(path: str, worlds: Sequence[World]) -> str:
    """What is wrong with a path, or ""."""
    parts = split(path)
    farthest = -1
    holder: Any = None
    for world in worlds:
        walked, there = _walk(world, parts)
        if walked == len(parts):
            return ""
        if walked > farthest:
            farthest, holder = walked, there
    if not is_map(holder):
        return ""
    part = parts[farthest]
    near = did_you_mean(part, [str(key) for key in holder]) if _FIELD.fullmatch(part) else ""
    if not near and farthest:
        return ""
    return f"no world of a task has {'.'.join(parts[: farthest + 1])!r}{near}"


def _walk(world: World, parts: Sequence[str]) -> tuple[int, Any]:
    """How many parts of a path lead somewhere, and what is there."""
    for walked in range(len(parts), 0, -1):
        try:
            return walked, lookup(world, parts[:walked])
        except KeyError:
            continue
    return 0, world
