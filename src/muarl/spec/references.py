"""What the names in a domain's files refer to: personas, ids, facts, servers, turns, devices.

Each function yields findings about one model, and needs nothing but the specs and, for file
references, the folder that holds them. Nothing of a domain is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from muarl.spec.declared_tools import domain_tool_findings, task_tool_findings
from muarl.spec.device import DEVICE
from muarl.spec.domain import DomainSpec
from muarl.spec.file_references import domain_file_findings
from muarl.spec.finding import Finding, unknown
from muarl.spec.named_files import leads_outside, no_file
from muarl.spec.predicate import PredicateSpec
from muarl.spec.speech_references import speech_findings
from muarl.spec.task import FactSpec, RequestSpec, TasksFile, TaskSpec
from muarl.spec.tools import CommandToolsSpec, ToolsSpec
from muarl.spec.wording import unsayable, unworded


def domain_findings(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    """Dangling names of a domain's file."""
    yield from domain_file_findings(domain, folder)
    yield from _servers(domain.tools, ("tools",), folder)
    yield from _device(domain, folder)
    yield from domain_tool_findings(domain)
    yield from _queries_of_no_database(domain, domain)
    if not any(persona.weight for persona in domain.personas.values()):
        yield Finding(("personas",), "every persona has weight 0, so none can be drawn", True)
    yield from speech_findings(domain)


def tasks_findings(file: TasksFile, domain: DomainSpec | None) -> Iterator[Finding]:
    """Ids given twice and dangling names of a tasks file."""
    if domain is not None and file.domain != domain.id:
        yield Finding(("domain",), f"these tasks are for domain {file.domain!r}, not {domain.id!r}")
    seen: dict[str, int] = {}
    for index, task in enumerate(file.tasks):
        at = ("tasks", index)
        if seen.setdefault(task.id, index) != index:
            message = f"task id {task.id!r} is also item {seen[task.id] + 1}; ids are unique"
            yield Finding((*at, "id"), message)
        for finding in task_findings(task, domain):
            yield finding.below(*at)


def generated_findings(tasks: Iterable[TaskSpec], domain: DomainSpec) -> Iterator[str]:
    """Ids given twice and dangling names of tasks that no file holds."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            yield f"task {task.id!r}: the id is given twice"
        seen.add(task.id)
        for finding in task_findings(task, domain):
            yield f"task {task.id!r}: {finding.message}"


def task_findings(task: TaskSpec, domain: DomainSpec | None) -> Iterator[Finding]:
    """Facts given twice and dangling names of one task, from a file or from a generator."""
    if task.user is not None:
        yield from (f.below("user") for f in _ledger(task.user.facts))
        for index, request in enumerate(task.user.requests):
            yield from (f.below("user", "requests", index) for f in _request(request))
    if domain is None or domain.benchmark is None:  # published tasks are as they are
        yield from _fixed_turns(task)
    if domain is None:
        return
    if domain.device is None:
        for index, call in enumerate(task.gold):
            if call.by == "user":
                yield Finding(("gold", index, "by"), _NO_DEVICE)
        for field in ("reward", "training_reward", "metrics"):
            for loc in _by_user(getattr(task, field) or ()):
                yield Finding((field, *loc), _NO_DEVICE)
    elif domain.device.world is not None and not isinstance(task.world.get(DEVICE, {}), Mapping):
        message = "the device's part of the world is a mapping; name what is to change in it"
        yield Finding(("world", DEVICE), message)
    yield from task_tool_findings(task, domain)
    yield from _queries_of_no_database(task, domain)
    dangling = False
    for index, persona in enumerate(task.personas):
        if persona not in domain.personas:
            dangling = True
            yield Finding(("personas", index), unknown("persona", persona, domain.personas))
    if dangling:
        return
    if not any(domain.personas[persona].weight for persona in task.personas):
        yield Finding(("personas",), "all these personas have weight 0, so none can be drawn")
    if domain.user is not None and task.user is not None:
        for message in unsayable(task, domain.user, domain.personas):
            yield Finding(("user",), message, at_key=True)


def _fixed_turns(task: TaskSpec) -> Iterator[Finding]:
    """Gold calls after messages that the user does not have, or says before; tools shown to no end."""
    there = len(task.turns)
    before = 0
    for index, call in enumerate(task.gold):
        at = ("gold", index, "turn")
        if call.turn and call.turn >= there:
            have = f"{there} `turns`, counted from 0" if there else "no `turns`"
            yield Finding(at, f"there is no turn {call.turn}: the task has {have}")
        elif call.turn < before:
            message = (
                f"the gold call before this one is made after turn {before}, so that this one cannot be "
                f"made after turn {call.turn}; gold calls stand in the order in which they are made"
            )
            yield Finding(at, message)
        before = max(before, call.turn)
    for index, turn in enumerate(task.turns if task.tools is None else ()):
        if turn.shows:
            message = (
                "the agent is shown all tools from the beginning, since the task names none; list "
                "those that it is shown at first under the task's `tools`"
            )
            yield Finding(("turns", index, "shows"), message)


def wording_findings(domain: DomainSpec, tasks: Iterable[TaskSpec]) -> Iterator[Finding]:
    """Acts that users of these tasks may have to say and have no words for, in one finding."""
    if domain.user is not None and (message := unworded(tasks, domain.user, domain.personas)):
        yield Finding(("user", "phrasings"), message, at_key=True)


def _device(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    """What two sides on one world cannot be, and calls of a user who has no device."""
    if domain.device is None:
        for field in ("reward", "training_reward", "metrics"):
            for loc in _by_user(getattr(domain, field) or ()):
                yield Finding((field, *loc), _NO_DEVICE)
        return
    yield from _servers(domain.device.tools, ("device", "tools"), folder)
    sides: dict[tuple[str, ...], Sequence[ToolsSpec]] = {
        ("tools",): domain.tools,
        ("device", "tools"): domain.device.tools,
    }
    for at, servers in sides.items():
        for index, server in enumerate(servers):
            if isinstance(server, CommandToolsSpec) and server.world_resource is not None:
                message = (
                    "this server holds the whole world by itself, and would not see what the other "
                    "side does; name its parts of the world under `state`"
                )
                yield Finding((*at, index, "world_resource"), message, at_key=True)
            if server.state and domain.device.sync:
                message = (
                    "this server's state is read before and after a dialogue only, so `device.sync` "
                    "cannot keep it in step; keep it in the world, or drop `sync`"
                )
                yield Finding((*at, index, "state"), message, at_key=True)
    if domain.device.world is not None and DEVICE in (domain.world.data or ()):
        message = f"{DEVICE!r} is where `device.world` lies in the world; name this key otherwise"
        yield Finding(("world", "data", DEVICE), message, at_key=True)


_NO_DEVICE = (
    "the user has no device to call tools on; give the domain a `device`, or leave `by` out"
)


def _by_user(predicates: Iterable[PredicateSpec]) -> Iterator[tuple[str | int, ...]]:
    """Where predicates ask for calls of the user's."""
    for index, predicate in enumerate(predicates):
        for below, part in predicate.walk():
            for kind in ("called", "never_called"):
                if (call := getattr(part, kind)) is not None and call.by == "user":
                    yield (index, *below, kind, "by")


def _servers(
    servers: Sequence[ToolsSpec], above: tuple[str, ...], folder: Path
) -> Iterator[Finding]:
    """Names given twice, and parts of the world that two servers keep."""
    names: set[str] = set()
    keys: set[str] = set()
    for index, server in enumerate(servers):
        at: tuple[str | int, ...] = (*above, index)
        if server.label in names:
            message = f"two servers are named {server.label!r}; give one another `name`"
            yield Finding((*at, "name") if server.name else at, message)
        names.add(server.label)
        for key in server.state:
            if key in keys:
                message = f"another server keeps {key!r} of the world as well"
                yield Finding((*at, "state", key), message, at_key=True)
            keys.add(key)
        if isinstance(server, CommandToolsSpec):
            if server.files is not None and (message := leads_outside(server.files)):
                yield Finding((*at, "files"), message)
            elif server.files is not None and not os.path.isdir(folder / server.files):
                yield Finding((*at, "files"), no_file(folder, server.files, "folder"))
            if server.world_resource is not None and len(servers) > 1:
                message = (
                    "the world cannot be that of one of several servers; name its parts of the "
                    "world under `state`"
                )
                yield Finding((*at, "world_resource"), message, at_key=True)


def _queries_of_no_database(holder: DomainSpec | TaskSpec, domain: DomainSpec) -> Iterator[Finding]:
    """`sql` predicates over a world that is a document."""
    if domain.world.sql is not None:
        return
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(holder, field) or ()):
            for below, part in predicate.walk():
                if part.sql is not None:
                    message = "the world is no database; use a `world` predicate"
                    yield Finding((field, index, *below, "sql"), message, at_key=True)


def _request(request: RequestSpec) -> Iterator[Finding]:
    yield from _ledger(request.facts)
    if request.instead is not None:
        yield from (finding.below("instead") for finding in _request(request.instead))


def _ledger(facts: Sequence[FactSpec]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, fact in enumerate(facts):
        if fact.id in seen:
            yield Finding(("facts", index, "id"), f"fact {fact.id!r} is given twice")
        seen.add(fact.id)
