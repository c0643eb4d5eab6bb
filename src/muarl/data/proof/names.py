"""Names that only a running domain can confirm: tools, and ids across generated splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.spec import DomainSpec, TaskSpec
from muarl.spec.declared_tools import tools_in
from muarl.spec.finding import unknown
from muarl.spec.predicate import PredicateSpec


def name_findings(subject: Subject, tools: Sequence[str]) -> Iterator[ProofFinding]:
    """Tools that the server does not offer, and task ids given twice."""
    spec = subject.domain.spec
    for field in ("writes", "terminal"):
        for index, tool in enumerate(getattr(spec, field)):
            if tool not in tools:
                yield subject.about(Check.NAMES, (field, index), unknown("tool", tool, tools))
    for field, predicates in _predicates_of(spec):
        for loc, tool in tools_in(predicates or ()):
            if tool not in tools:
                message = unknown("tool", tool, tools)
                yield subject.about(Check.NAMES, (field, *loc), message)
    seen: set[str] = set()
    for task in subject.all_tasks():
        if task.id in seen:
            yield subject.about_task(Check.NAMES, task, ("id",), "the id is given twice")
        seen.add(task.id)
        for index, call in enumerate(task.gold):
            if call.tool not in tools:
                message = unknown("tool", call.tool, tools)
                yield subject.about_task(Check.NAMES, task, ("gold", index, "tool"), message)
        for field, own in _predicates_of(task):
            for loc, tool in tools_in(own or ()):
                if tool not in tools:
                    message = unknown("tool", tool, tools)
                    yield subject.about_task(Check.NAMES, task, (field, *loc), message)


def _predicates_of(
    spec: DomainSpec | TaskSpec,
) -> tuple[tuple[str, Sequence[PredicateSpec] | None], ...]:
    return (
        ("reward", spec.reward),
        ("training_reward", spec.training_reward),
        ("metrics", spec.metrics),
    )
