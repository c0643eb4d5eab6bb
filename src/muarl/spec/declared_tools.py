"""What specs say of tools that stand in the domain's own file: names, and arguments.

Tools of a server in Python, of a command or behind a URL are known once it runs; those in SQL are
known at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muarl.spec.domain import DomainSpec
from muarl.spec.finding import Finding, unknown
from muarl.spec.predicate import Loc, PredicateSpec
from muarl.spec.sql import SqlToolSpec
from muarl.spec.task import TaskSpec
from muarl.spec.tools import SqlToolsSpec

Declared = Mapping[str, SqlToolSpec]
"""Every tool that the policy is offered."""


def declared_tools(domain: DomainSpec) -> Declared | None:
    """The tools of a domain, if all of them stand in its file under names of their own."""
    servers = [server for server in domain.tools if isinstance(server, SqlToolsSpec)]
    names = Counter(name for server in servers for name in server.sql)
    if len(servers) < len(domain.tools) or max(names.values(), default=0) > 1:
        return None
    return {
        name: tool
        for server in servers
        for name, tool in server.sql.items()
        if name not in server.hidden
    }


def domain_tool_findings(domain: DomainSpec) -> Iterator[Finding]:
    """Tools that a domain names and does not have."""
    tools = declared_tools(domain)
    if tools is None:
        return
    for field in ("writes", "terminal"):
        for index, tool in enumerate(getattr(domain, field)):
            if tool not in tools:
                yield Finding((field, index), unknown("tool", tool, tools))
    yield from _in_predicates(domain, tools)


def task_tool_findings(task: TaskSpec, domain: DomainSpec) -> Iterator[Finding]:
    """Tools that a task names and its domain does not have, and gold calls it would refuse."""
    tools = declared_tools(domain)
    if tools is None:
        return
    for index, call in enumerate(task.gold):
        at = ("gold", index)
        if call.tool not in tools:
            yield Finding((*at, "tool"), unknown("tool", call.tool, tools))
            continue
        tool = tools[call.tool]
        yield from (f.below(*at, "arguments") for f in _unknown_arguments(tool, call.arguments))
        for name, parameter in tool.parameters.items():
            value = call.arguments.get(name)
            if value is not None and (problem := parameter.problem(value)):
                yield Finding((*at, "arguments", name), f"{name!r} {problem}")
            elif value is None and parameter.required:
                yield Finding(at, f"{call.tool!r} needs the argument {name!r}")
    yield from _in_predicates(task, tools)


def tools_in(predicates: Sequence[PredicateSpec]) -> Iterator[tuple[Loc, str]]:
    """Tools that predicates name, and where."""
    for index, predicate in enumerate(predicates):
        for below, part in predicate.walk():
            loc = (index, *below)
            if part.called is not None:
                yield (*loc, "called", "tool"), part.called.tool
                if part.called.before is not None:
                    yield (*loc, "called", "before"), part.called.before
            if part.never_called is not None:
                yield (*loc, "never_called", "tool"), part.never_called.tool
            if part.confirmed is not None:
                for position, tool in enumerate(part.confirmed.tools or ()):
                    yield (*loc, "confirmed", "tools", position), tool


def _in_predicates(spec: DomainSpec | TaskSpec, tools: Declared) -> Iterator[Finding]:
    for field in ("reward", "training_reward", "metrics"):
        predicates: Sequence[PredicateSpec] = getattr(spec, field) or ()
        for loc, tool in tools_in(predicates):
            if tool not in tools:
                yield Finding((field, *loc), unknown("tool", tool, tools))
        for index, predicate in enumerate(predicates):
            for below, part in predicate.walk():
                called = part.called or part.never_called
                if called is not None and called.tool in tools:
                    at = (field, index, *below, part.kind, "arguments")
                    found = _unknown_arguments(tools[called.tool], called.arguments)
                    yield from (f.below(*at) for f in found)


def _unknown_arguments(tool: SqlToolSpec, arguments: Mapping[str, Any]) -> Iterator[Finding]:
    for name in arguments:
        if name not in tool.parameters:
            yield Finding((name,), unknown("parameter", name, tool.parameters), at_key=True)
