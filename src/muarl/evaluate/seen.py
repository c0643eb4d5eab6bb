"""Which of the tasks of an evaluation a policy was trained on, or on nearly the same (law L10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from muarl.overlap import deed_of, near_duplicates
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
        same: Those of them that were trained on: the same task, or one in which the same is done.
        near: Of the others, those nearly the same as one that was trained on, each with that one.
    """

    evaluated: int
    same: list[str] = []
    near: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.same or self.near)

    def __str__(self) -> str:
        return (
            f"{len(self.same)} of {self.evaluated} evaluated tasks are trained on, and "
            f"{len(self.near)} are nearly the same as some that are"
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
    known = set(same)
    others = [task for task in evaluated.tasks if task.id not in known]
    trained, left = {id(task) for task in practised.tasks}, {id(task) for task in others}
    near: dict[str, str] = {}
    for pair in near_duplicates([*practised.tasks, *others]):
        if id(pair.first) in trained and id(pair.second) in left:
            near.setdefault(pair.second.id, pair.first.id)
    return Seen(len(evaluated.tasks), same, near)


def told_apart(row_of: Callable[[str], str], seen: Seen | None) -> Callable[[str], str]:
    """Under which name a task is summed up, where tasks that were trained on are told apart.

    Example:
        Of the tasks of `retail`, those that were trained on stand under `retail (trained on)`.
    """
    if not seen:
        return row_of
    trained = {*seen.same, *seen.near}
    return lambda task_id: (
        f"{row_of(task_id)} (trained on)".lstrip() if task_id in trained else row_of(task_id)
    )


def named(near: dict[str, str]) -> str:
    """The first of some pairs, in words."""
    return ", ".join(f"{mine!r} like {other!r}" for mine, other in list(near.items())[:_NAMED])
