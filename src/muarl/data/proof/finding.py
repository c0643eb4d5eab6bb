"""What a proof looks at, and what it may find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from muarl.domain import Domain
from muarl.errors import Problem
from muarl.gate import current_lane
from muarl.spec import Located, TasksFile, TaskSpec, load_task_files
from muarl.spec.explain import Loc
from muarl.world import World


class Check(StrEnum):
    """What was proved, or not."""

    SERVER = "server"
    """The tool server starts, lists its tools, and stays alive."""
    NAMES = "names"
    """Everything a spec names exists: tools, personas, wordings; no id is given twice."""
    SPEECH = "speech"
    """What scripted users are to say has words: no typo leaves a template unsaid, a fact untold."""
    GOLD = "gold"
    """A task's gold calls run without an error and earn 1."""
    IDLE = "idle"
    """Doing nothing earns less, where there is something to do."""
    AGAIN = "again"
    """The same calls on the same world give the same; so do generator and world."""
    SPLITS = "splits"
    """Splits share no entity and no wording."""
    DUPLICATES = "duplicates"
    """No two tasks are nearly the same."""
    READS = "reads"
    """Looking at something changes neither world nor reward."""
    REACH = "reach"
    """Every fact that a task needs can be known."""
    SYNC = "sync"
    """What keeps the user's device in step settles at once, and gives the same every time."""
    COVERAGE = "coverage"
    """Every tool is of use in some task."""
    FUZZ = "fuzz"
    """Gold runs with a mistake in them do not pass."""
    FLOOR = "floor"
    """Policies without skill stay under the domain's floor."""
    EXPERT = "expert"
    """The domain's expert earns 1."""


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """One reason why a domain is not sound.

    Attributes:
        check: What it speaks against.
        problem: Where, and what to do.
        task_id: The task, if it is about one.
    """

    check: Check
    problem: Problem
    task_id: str | None = None


class Subject:
    """A domain under proof: its tasks, and where each of them is written.

    Args:
        domain: The domain.
        limit: Look at no more tasks of a split than this, spread evenly over it.

    Raises:
        SpecError: The domain's tasks or world cannot be had.
    """

    def __init__(self, domain: Domain, limit: int | None = None) -> None:
        self.domain = domain
        self.tasks = {split: spread(domain.tasks(split), limit) for split in domain.splits}
        self._homes: dict[str, tuple[Located[TasksFile], int]] = {
            task.id: (file, index)
            for file in load_task_files(domain.located)
            for index, task in enumerate(file.spec.tasks)
        }

    def all_tasks(self) -> Iterator[TaskSpec]:
        """The tasks of all splits."""
        for tasks in self.tasks.values():
            yield from tasks

    def world_for(self, task: TaskSpec) -> World:
        """A fresh world of a task's; calls that follow are made for that task."""
        current_lane.set(task.id)
        return self.domain.world_for(task)

    def about(self, check: Check, loc: Loc, message: str, *, at_key: bool = False) -> ProofFinding:
        """A finding about the domain's own file."""
        return ProofFinding(check, self.domain.located.problem(loc, message, at_key=at_key))

    def about_task(
        self, check: Check, task: TaskSpec, loc: Loc, message: str, *, at_key: bool = False
    ) -> ProofFinding:
        """A finding about one task; generated tasks have no line but their generator's."""
        message = f"task {task.id!r}: {message}"
        if task.id in self._homes:
            file, index = self._homes[task.id]
            problem = file.problem(("tasks", index, *loc), message, at_key=at_key)
        else:
            problem = self.domain.located.problem(self.domain.spec.tasks.loc, message)
        return ProofFinding(check, problem, task.id)


def spread(tasks: tuple[TaskSpec, ...], limit: int | None) -> tuple[TaskSpec, ...]:
    """At most `limit` tasks, evenly spaced, so that a sorted file gives of everything."""
    if limit is None or len(tasks) <= limit:
        return tasks
    return tuple(tasks[i * len(tasks) // limit] for i in range(limit))
