"""Names that only a running domain can confirm: tools, and ids across generated splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.spec import DomainSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.spec.declared_tools import tools_in
from muarl.spec.finding import unknown
from muarl.spec.predicate import PredicateSpec


def name_findings(
    subject: Subject, tools: Sequence[str], user_tools: Sequence[str]
) -> Iterator[ProofFinding]:
    """Tools that the server of a side does not offer, and task ids given twice."""
    spec = subject.domain.spec
    sides: dict[Who, Sequence[str]] = {"agent": tools, "user": user_tools}
    for field in ("writes", "terminal"):
        for index, tool in enumerate(getattr(spec, field)):
            if tool not in tools:
                yield subject.about(Check.NAMES, (field, index), unknown("tool", tool, tools))
    for index, tool in enumerate(spec.device.writes if spec.device is not None else ()):
        if tool not in user_tools:
            loc = ("device", "writes", index)
            yield subject.about(Check.NAMES, loc, unknown("tool", tool, user_tools))
    for field, predicates in _predicates_of(spec):
        for at, by, tool in tools_in(predicates or ()):
            if tool not in sides[by]:
                message = unknown("tool", tool, sides[by])
                yield subject.about(Check.NAMES, (field, *at), message)
    seen: set[str] = set()
    for task in subject.all_tasks():
        if task.id in seen:
            yield subject.about_task(Check.NAMES, task, ("id",), "the id is given twice")
        seen.add(task.id)
        for index, call in enumerate(task.gold):
            if call.tool not in sides[call.by]:
                message = unknown("tool", call.tool, sides[call.by])
                yield subject.about_task(Check.NAMES, task, ("gold", index, "tool"), message)
        for field, own in _predicates_of(task):
            for at, by, tool in tools_in(own or ()):
                if tool not in sides[by]:
                    message = unknown("tool", tool, sides[by])
                    yield subject.about_task(Check.NAMES, task, (field, *at), message)


def _predicates_of(
    spec: DomainSpec | TaskSpec,
) -> tuple[tuple[str, Sequence[PredicateSpec] | None], ...]:
    return (
        ("reward", spec.reward),
        ("training_reward", spec.training_reward),
        ("metrics", spec.metrics),
    )
