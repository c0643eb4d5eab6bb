"""Which task of a domain somebody means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from muarl.errors import Problem, SpecError, did_you_mean

if TYPE_CHECKING:
    from muarl.domain import Domain
    from muarl.spec import TaskSpec

_SHOWN = 5


def all_tasks(domain: Domain) -> list[TaskSpec]:
    """The tasks of all splits."""
    return [task for split in domain.splits for task in domain.tasks(split)]


def task_of(domain: Domain, task_id: str) -> TaskSpec:
    """The task of that id.

    Raises:
        SpecError: There is none.
    """
    tasks = {task.id: task for task in all_tasks(domain)}
    if task_id not in tasks:
        raise unknown(domain, "task", task_id, tasks)
    return tasks[task_id]


def unknown(domain: Domain, kind: str, name: str, known: Iterable[str]) -> SpecError:
    """The error that names what there is instead."""
    names = list(known)
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    hint = did_you_mean(name, names) or f"; there are {shown}"
    return wrong(domain, f"there is no {kind} {name!r}{hint}")


def wrong(domain: Domain, message: str) -> SpecError:
    """The error that says something of a domain as a whole."""
    return SpecError([Problem(str(domain.located.path), 0, 0, message)])
