"""Names that only a running domain can confirm: tools, and ids across generated splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.predicates import (
    argument_names,
    arguments_of,
    predicates_of,
    unknown_arguments,
)
from muarl.errors import did_you_mean
from muarl.messages import ToolSpec
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.spec.declared_tools import action_findings, tools_in, tools_shown
from muarl.spec.finding import unknown
from muarl.world import World


def name_findings(
    subject: Subject, offered: Sequence[ToolSpec], on_device: Sequence[ToolSpec]
) -> Iterator[ProofFinding]:
    """Names of tools, arguments and parts of worlds that there are none of; task ids given twice."""
    spec = subject.domain.spec
    specs: dict[Who, dict[str, ToolSpec]] = {
        "agent": {tool.name: tool for tool in offered},
        "user": {tool.name: tool for tool in on_device},
    }
    tools, user_tools = list(specs["agent"]), list(specs["user"])
    sides: dict[Who, Sequence[str]] = {"agent": tools, "user": user_tools}
    for field in ("writes", "terminal"):
        for index, tool in enumerate(getattr(spec, field)):
            if tool not in tools:
                yield subject.about(Check.NAMES, (field, index), unknown("tool", tool, tools))
    for index, tool in enumerate(spec.device.writes if spec.device is not None else ()):
        if tool not in user_tools:
            hers = ("device", "writes", index)
            yield subject.about(Check.NAMES, hers, unknown("tool", tool, user_tools))
    if spec.device is not None:
        takes = {tool.name: arguments_of(tool) for tool in on_device}
        for found in action_findings(spec, takes):
            yield subject.about(Check.NAMES, found.loc, found.message, at_key=found.at_key)
    for field, predicates in predicates_of(spec):
        for at, by, tool in tools_in(predicates or ()):
            if tool not in sides[by]:
                message = unknown("tool", tool, sides[by])
                yield subject.about(Check.NAMES, (field, *at), message)
        for at, message in argument_names(predicates or (), specs, spec.writes):
            yield subject.about(Check.NAMES, (field, *at), message, at_key=True)
    seen: set[str] = set()
    for task in subject.all_tasks():
        if task.id in seen:
            yield subject.about_task(Check.NAMES, task, ("id",), "the id is given twice")
        seen.add(task.id)
        for index, call in enumerate(task.gold):
            if call.tool not in sides[call.by]:
                message = unknown("tool", call.tool, sides[call.by])
                yield subject.about_task(Check.NAMES, task, ("gold", index, "tool"), message)
                continue
            for name, message in unknown_arguments(specs[call.by][call.tool], call.arguments):
                where = ("gold", index, "arguments", name)
                yield subject.about_task(Check.NAMES, task, where, message, at_key=True)
        for loc, name in tools_shown(task):
            if name not in tools:
                yield subject.about_task(Check.NAMES, task, loc, unknown("tool", name, tools))
        for key, message in _unknown_keys(task, subject.domain.base):
            yield subject.about_task(Check.NAMES, task, ("world", key), message, at_key=True)
        for field, own in predicates_of(task):
            for at, by, tool in tools_in(own or ()):
                if tool not in sides[by]:
                    message = unknown("tool", tool, sides[by])
                    yield subject.about_task(Check.NAMES, task, (field, *at), message)
            for at, message in argument_names(own or (), specs, spec.writes):
                yield subject.about_task(Check.NAMES, task, (field, *at), message, at_key=True)


def _unknown_keys(task: TaskSpec, base: World) -> Iterator[tuple[str, str]]:
    """Parts of a task's world that look like a slip of the pen for a part of the domain's."""
    for key in task.world or ():
        if key not in base and (near := did_you_mean(key, map(str, base))):
            hint = f"{near} Else give the domain's world that key too, were it empty"
            yield key, f"the domain's world has no {key!r}{hint}"
