"""Which of the tasks of an evaluation a policy was trained on, or on nearly the same (law L10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from muarl.overlap import NearDuplicates, between, deed_of, of_task
from muarl.spec import TaskSpec
from muarl.suite import AnyDomain

_NAMED = 5
"""Pairs of tasks that a message names."""


class Tasks(NamedTuple):
    """Tasks and the domain, or the suite, that they are of."""

    domain: AnyDomain
    tasks: Sequence[TaskSpec]


class Seen(msgspec.Struct, frozen=True):
    """What of an evaluation was trained on.

    Attributes:
        evaluated: Tasks of the evaluation.
        pairs: Those of them that were trained on, or are nearly the same as one that was, each with it.
        same: Of these, those that are the same: the task itself, or one in which the same is done.
    """

    evaluated: int
    pairs: dict[str, str] = {}
    same: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __str__(self) -> str:
        return (
            f"{len(self.pairs)} of {self.evaluated} evaluated tasks were trained on, or are nearly the "
            f"same as some that were ({len(self.same)} are the same)"
        )


def same_tasks(evaluated: Tasks, practised: Tasks) -> list[str]:
    """Ids of evaluated tasks that are trained on: by what they are called, or by what is to be done."""
    seen = {
        identity
        for task in practised.tasks
        for identity in (practised.domain.origin(task.id), deed_of(task))
    }
    return [
        task.id
        for task in evaluated.tasks
        if {evaluated.domain.origin(task.id), deed_of(task)} & seen
    ]


def seen_tasks(evaluated: Tasks, practised: Tasks) -> Seen:
    """Likewise, and those that are nearly the same; slower."""
    same = same_tasks(evaluated, practised)
    origins = {practised.domain.origin(task.id): task.id for task in practised.tasks}
    known = NearDuplicates()
    for task in practised.tasks:
        known.add(task)
    pairs: dict[str, str] = {}
    for task in evaluated.tasks:
        if (itself := origins.get(evaluated.domain.origin(task.id))) is not None:
            pairs[task.id] = itself
        elif (pair := next(iter(known.like(task)), None)) is not None:
            pairs[task.id] = pair.first.id
    return Seen(len(evaluated.tasks), pairs, [name for name in same if name in pairs])


def seen_elsewhere(evaluated: Tasks, practised: Tasks) -> Seen:
    """As `seen_tasks`, and those alike in words or entities to one of another domain.

    Within a domain, tasks of one template are alike and yet not the same; where two benchmarks have
    tasks that are, one was made of the other.
    """
    seen = seen_tasks(evaluated, practised)
    by_folder: defaultdict[Path, list[TaskSpec]] = defaultdict(list)
    for task in practised.tasks:
        by_folder[practised.domain.origin(task.id)[0]].append(task)
    pairs = dict(seen.pairs)
    for folder, trained in by_folder.items():
        others = [t for t in evaluated.tasks if evaluated.domain.origin(t.id)[0] != folder]
        for pair in between([*map(of_task, trained)], [*map(of_task, others)]).pairs:
            pairs.setdefault(pair.item, pair.like)
    return Seen(seen.evaluated, pairs, seen.same)


def told_apart(row_of: Callable[[str], str], seen: Seen | None) -> Callable[[str], str]:
    """Under which name a task is summed up, where tasks that were trained on are told apart.

    Example:
        Of the tasks of `retail`, those that were trained on stand under `retail (trained on)`.
    """
    if not seen:
        return row_of
    trained = seen.pairs.keys()
    return lambda task_id: (
        f"{row_of(task_id)} (trained on)".lstrip() if task_id in trained else row_of(task_id)
    )


def named(pairs: dict[str, str]) -> str:
    """The first of some pairs, in words."""
    return ", ".join(f"{mine!r} like {other!r}" for mine, other in list(pairs.items())[:_NAMED])
