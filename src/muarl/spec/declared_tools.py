"""What specs say of tools that stand in the domain's own file: names, and arguments.

Tools of a server in Python, of a command or behind a URL are known once it runs; those in SQL are
known at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.spec.calls import Who
from muarl.spec.domain import DomainSpec
from muarl.spec.finding import Finding, unknown
from muarl.spec.predicate import Loc, PredicateSpec
from muarl.spec.sql import SqlToolSpec
from muarl.spec.task import GoldCallSpec, TaskSpec
from muarl.spec.tools import SqlToolsSpec, ToolsSpec

Declared = Mapping[str, SqlToolSpec]
"""Every tool that one side is offered."""


def declared_tools(domain: DomainSpec) -> dict[Who, Declared]:
    """Side to its tools, where all of them stand in the domain's file under names of their own."""
    sides: dict[Who, Sequence[ToolsSpec]] = {"agent": domain.tools}
    if domain.device is not None:
        sides["user"] = domain.device.tools
    found: dict[Who, Declared] = {}
    for who, servers in sides.items():
        tools = _declared(servers)
        if tools is not None:
            found[who] = tools
    return found


def domain_tool_findings(domain: DomainSpec) -> Iterator[Finding]:
    """Tools that a domain names and does not have."""
    sides = declared_tools(domain)
    named: list[tuple[Loc, Who, Sequence[str]]] = [
        (("writes",), "agent", domain.writes),
        (("terminal",), "agent", domain.terminal),
    ]
    if domain.device is not None:
        named.append((("device", "writes"), "user", domain.device.writes))
    for at, who, names in named:
        for index, name in enumerate(names):
            if who in sides and name not in sides[who]:
                yield Finding((*at, index), unknown("tool", name, sides[who]))
    if "user" in sides:
        takes = {name: list(tool.parameters) for name, tool in sides["user"].items()}
        yield from action_findings(domain, takes)
    yield from _in_predicates(domain, sides)


def action_findings(
    domain: DomainSpec, tools: Mapping[str, Sequence[str] | None]
) -> Iterator[Finding]:
    """Actions of scripted users whose tool the device lacks, or that name an argument it does not take.

    Args:
        domain: The domain.
        tools: The user's tools, with the arguments that each takes; None where any is taken.
    """
    for name, action in (domain.user.actions if domain.user is not None else {}).items():
        at = ("user", "actions", name)
        if action.tool not in tools:
            yield Finding((*at, "tool"), unknown("tool", action.tool, tools))
            continue
        takes = tools[action.tool]
        for argument in action.arguments:
            if takes is not None and argument not in takes:
                message = f"{unknown('argument', argument, takes)} (of tool {action.tool!r})"
                yield Finding((*at, "arguments", argument), message, at_key=True)


def task_tool_findings(task: TaskSpec, domain: DomainSpec) -> Iterator[Finding]:
    """Tools that a task names and its domain does not have, and gold calls it would refuse."""
    sides = declared_tools(domain)
    for index, call in enumerate(task.gold):
        if call.by not in sides:
            continue
        at, tools = ("gold", index), sides[call.by]
        if call.tool in tools:
            yield from (f.below(*at) for f in _refused(call, tools[call.tool]))
        else:
            yield Finding((*at, "tool"), unknown("tool", call.tool, tools))
    for loc, name in tools_shown(task):
        if "agent" in sides and name not in sides["agent"]:
            yield Finding(loc, unknown("tool", name, sides["agent"]))
    yield from _in_predicates(task, sides)


def tools_shown(task: TaskSpec) -> Iterator[tuple[Loc, str]]:
    """Tools that a task shows the agent, at first and later: where it names them."""
    for index, name in enumerate(task.tools or ()):
        yield ("tools", index), name
    for turn, said in enumerate(task.turns):
        for index, name in enumerate(said.shows):
            yield ("turns", turn, "shows", index), name


def tools_in(predicates: Sequence[PredicateSpec]) -> Iterator[tuple[Loc, Who, str]]:
    """Tools that predicates name: where, and whose."""
    for index, predicate in enumerate(predicates):
        for below, part in predicate.walk():
            loc = (index, *below)
            if part.called is not None:
                yield (*loc, "called", "tool"), part.called.by, part.called.tool
                if part.called.before is not None:
                    yield (*loc, "called", "before"), "agent", part.called.before
            if part.never_called is not None:
                never = part.never_called
                yield (*loc, "never_called", "tool"), never.by, never.tool
            if part.confirmed is not None:
                for position, tool in enumerate(part.confirmed.tools or ()):
                    yield (*loc, "confirmed", "tools", position), "agent", tool
            if part.preceded is not None:
                yield (*loc, "preceded", "by"), "agent", part.preceded.by
                for position, tool in enumerate(part.preceded.tools or ()):
                    yield (*loc, "preceded", "tools", position), "agent", tool


def _declared(servers: Sequence[ToolsSpec]) -> Declared | None:
    in_sql = [server for server in servers if isinstance(server, SqlToolsSpec)]
    names = Counter(name for server in in_sql for name in server.sql)
    if len(in_sql) < len(servers) or max(names.values(), default=0) > 1:
        return None
    return {
        name: tool
        for server in in_sql
        for name, tool in server.sql.items()
        if name not in server.hidden
    }


def _refused(call: GoldCallSpec, tool: SqlToolSpec) -> Iterator[Finding]:
    """What is wrong with a call's arguments."""
    yield from (f.below("arguments") for f in _unknown_arguments(tool, call.arguments))
    for name, parameter in tool.parameters.items():
        value = call.arguments.get(name)
        if value is not None and (problem := parameter.problem(value)):
            yield Finding(("arguments", name), f"{name!r} {problem}")
        elif value is None and parameter.required:
            yield Finding((), f"{call.tool!r} needs the argument {name!r}")


def _in_predicates(spec: DomainSpec | TaskSpec, sides: Mapping[Who, Declared]) -> Iterator[Finding]:
    for field in ("reward", "training_reward", "metrics"):
        predicates: Sequence[PredicateSpec] = getattr(spec, field) or ()
        for loc, who, tool in tools_in(predicates):
            if who in sides and tool not in sides[who]:
                yield Finding((field, *loc), unknown("tool", tool, sides[who]))
        for index, predicate in enumerate(predicates):
            for below, part in predicate.walk():
                called = part.called or part.never_called
                if called is None or called.tool not in sides.get(called.by, {}):
                    continue
                at = (field, index, *below, part.kind, "arguments")
                found = _unknown_arguments(sides[called.by][called.tool], called.arguments)
                yield from (f.below(*at) for f in found)


def _unknown_arguments(tool: SqlToolSpec, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    for name in arguments:
        if name not in tool.parameters:
            yield Finding((name,), unknown("parameter", name, tool.parameters), at_key=True)
