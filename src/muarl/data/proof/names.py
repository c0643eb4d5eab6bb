"""Names that only a running domain can confirm: tools, and ids across generated splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.spec.explain import Loc
from muarl.spec.predicate import PredicateSpec
from muarl.spec.references import unknown


def name_findings(subject: Subject, tools: Sequence[str]) -> Iterator[ProofFinding]:
    """Tools that the server does not offer, and task ids given twice."""
    spec = subject.domain.spec
    for field in ("writes", "terminal"):
        for index, tool in enumerate(getattr(spec, field)):
            if tool not in tools:
                yield subject.about(Check.NAMES, (field, index), unknown("tool", tool, tools))
    for field, predicates in (("reward", spec.reward), ("metrics", spec.metrics)):
        for loc, tool in tools_in(predicates):
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
        for field, own in (("reward", task.reward), ("metrics", task.metrics)):
            for loc, tool in tools_in(own or ()):
                if tool not in tools:
                    message = unknown("tool", tool, tools)
                    yield subject.about_task(Check.NAMES, task, (field, *loc), message)


def tools_in(predicates: Sequence[PredicateSpec]) -> Iterator[tuple[Loc, str]]:
    """Tools that predicates name, and where."""
    for index, predicate in enumerate(predicates):
        if predicate.called is not None:
            yield (index, "called", "tool"), predicate.called.tool
            if predicate.called.before is not None:
                yield (index, "called", "before"), predicate.called.before
        if predicate.never_called is not None:
            yield (index, "never_called", "tool"), predicate.never_called.tool
        if predicate.confirmed is not None:
            for position, tool in enumerate(predicate.confirmed.tools or ()):
                yield (index, "confirmed", "tools", position), tool
