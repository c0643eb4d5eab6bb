"""Splits share no entity and no wording, or an evaluation repeats the training (law L10)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from muarl.data.proof.entities import Entities
from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.spec import TaskSpec
from muarl.spec.domain import SplitPhrasings
from muarl.spec.finding import unknown
from muarl.spec.split_references import ANY_SPLIT
from muarl.spec.wording import SLOT

_PART = re.compile(f"({SLOT.pattern.replace('(', '(?:')})")
"""A slot, which stands for a fact, in a template."""


def split_findings(subject: Subject) -> Iterator[ProofFinding]:
    """Entities of tasks and templates of users that occur in two splits, one finding per pair.

    An entity is a record of the world that a task brings along or names: in its facts or anywhere
    in the arguments of its gold calls.
    """
    yield from _shared_entities(subject)
    spec = subject.domain.spec
    if spec.user is not None:
        yield from _shared_wording(subject, spec.user.phrasings, ("user", "phrasings"))
        for voice, phrasings in spec.user.voices.items():
            yield from _shared_wording(subject, phrasings, ("user", "voices", voice))
    for name, persona in spec.personas.items():
        yield from _shared_wording(subject, persona.phrasings, ("personas", name, "phrasings"))


def _shared_entities(subject: Subject) -> Iterator[ProofFinding]:
    tasks = list(subject.all_tasks())
    shared = subject.domain.spec.shared
    entities = Entities(subject.domain.base, tasks, shared)
    for index, part in enumerate(shared):
        if part not in entities.parts:
            message = unknown("part of the world with records", part, sorted(entities.parts))
            yield subject.about(Check.SPLITS, ("shared", index), message)
    owners: dict[str, TaskSpec] = {}
    reported: set[tuple[str, str]] = set()
    for task in tasks:
        for entity in sorted(entities.of(task)):
            owner = owners.setdefault(entity.casefold(), task)
            pair = (owner.split, task.split)
            if owner.split != task.split and pair not in reported:
                reported.add(pair)
                message = (
                    f"{entity!r} is also in task {owner.id!r} of split {owner.split!r}; "
                    "splits must not share entities (a catalogue that all tasks speak of is named "
                    f"under the domain's `shared`: {entities.part_of(entity)})"
                )
                yield subject.about_task(Check.SPLITS, task, (), message)


def _shared_wording(
    subject: Subject, phrasings: SplitPhrasings, loc: tuple[str, ...]
) -> Iterator[ProofFinding]:
    first: dict[tuple[str, str], str] = {}
    for split, acts in phrasings.items():
        if split == ANY_SPLIT:
            continue
        for act, templates in acts.items():
            for index, template in enumerate(templates):
                key = (act, _words(template))
                if first.setdefault(key, split) != split:
                    message = (
                        f"split {first[key]!r} words `{act}` the same way; splits must not share "
                        f"wordings (what may be shared stands under `{ANY_SPLIT}`)"
                    )
                    yield subject.about(Check.SPLITS, (*loc, split, act, index), message)


def _words(template: str) -> str:
    """A wording without what no ear tells: case, punctuation, spaces; slots stay as they are.

    Example:
        >>> _words("No, thanks!") == _words("no thanks")
        True
    """
    parts = _PART.split(template)
    heard = [part if i % 2 else _heard(part) for i, part in enumerate(parts)]
    return "".join(heard) or template


def _heard(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if unicodedata.category(sign)[0] not in "PZC")
