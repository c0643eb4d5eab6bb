"""Splits share no entity and no wording, or an evaluation repeats the training (law L10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.spec import RequestSpec, TaskSpec
from muarl.spec.device import DEVICE
from muarl.spec.domain import SplitPhrasings
from muarl.spec.references import ANY_SPLIT


def split_findings(subject: Subject) -> Iterator[ProofFinding]:
    """Entities of tasks and templates of users that occur in two splits, one finding per pair.

    An entity is a record of the world, `orders.W1`, that a task brings along or names: in its
    facts or in the arguments of its gold calls.
    """
    yield from _shared_entities(subject)
    spec = subject.domain.spec
    if spec.user is not None:
        yield from _shared_wording(subject, spec.user.phrasings, ("user", "phrasings"))
    for name, persona in spec.personas.items():
        yield from _shared_wording(subject, persona.phrasings, ("personas", name, "phrasings"))


def _shared_entities(subject: Subject) -> Iterator[ProofFinding]:
    known = _records(subject.domain.base)
    owners: dict[str, TaskSpec] = {}
    reported: set[tuple[str, str]] = set()
    for task in subject.all_tasks():
        for entity in sorted(_entities(task, known)):
            owner = owners.setdefault(entity, task)
            pair = (owner.split, task.split)
            if owner.split != task.split and pair not in reported:
                reported.add(pair)
                message = (
                    f"{entity!r} is also in task {owner.id!r} of split {owner.split!r}; "
                    f"splits must not share entities"
                )
                yield subject.about_task(Check.SPLITS, task, (), message)


def _entities(task: TaskSpec, known: set[str]) -> set[str]:
    # A device is a person's own: there is one in every task, and its parts are no entities.
    brought = _records({key: part for key, part in task.world.items() if key != DEVICE})
    named = {str(value) for call in task.gold for value in call.arguments.values()}
    if task.user is not None:
        named |= {fact.value for fact in task.user.facts}
        for request in task.user.requests:
            named |= _values(request)
    return brought | (named & known)


def _values(request: RequestSpec) -> set[str]:
    values = {fact.value for fact in request.facts}
    return values if request.instead is None else values | _values(request.instead)


def _records(world: Mapping[str, Any]) -> set[str]:
    """Keys of records: mappings that lie in a mapping at the world's top."""
    return {
        key
        for collection in world.values()
        if isinstance(collection, Mapping)
        for key, record in collection.items()
        if isinstance(record, Mapping)
    }


def _shared_wording(
    subject: Subject, phrasings: SplitPhrasings, loc: tuple[str, ...]
) -> Iterator[ProofFinding]:
    first: dict[tuple[str, str], str] = {}
    for split, acts in phrasings.items():
        if split == ANY_SPLIT:
            continue
        for act, templates in acts.items():
            for index, template in enumerate(templates):
                key = (act, " ".join(template.casefold().split()))
                if first.setdefault(key, split) != split:
                    message = (
                        f"split {first[key]!r} words `{act}` the same way; splits must not share "
                        f"wordings (what may be shared stands under `{ANY_SPLIT}`)"
                    )
                    yield subject.about(Check.SPLITS, (*loc, split, act, index), message)
