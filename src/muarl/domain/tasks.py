"""Where a domain's tasks come from: its files, or what makes them, which is held to what files are held to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from muarl.authors import RAISED, blame, let_others_pass
from muarl.domain import content
from muarl.domain.kept_tasks import kept
from muarl.errors import SpecError
from muarl.goals import Composition, Goals, composed_apart
from muarl.json_values import json_problem
from muarl.seeds import derive_seed
from muarl.spec import TaskSpec, load_task_files
from muarl.spec.explain import in_words
from muarl.spec.references import generated_findings, wording_findings
from muarl.spec.tools import PythonToolsSpec, SqlToolsSpec

if TYPE_CHECKING:
    from muarl.domain.domain import Domain

_ANSWER_ALIKE = (PythonToolsSpec, SqlToolsSpec)
"""Tools in this process; a server elsewhere may answer otherwise today than when tasks were kept."""


class TaskSource:
    """The tasks of a domain, made or read each time that they are asked for."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._located = domain.located
        self._spec = domain.spec

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, in the spec's order."""
        if self._spec.tasks.splits:
            return tuple(self._spec.tasks.splits)
        return tuple(dict.fromkeys(task.split for task in self._of_files()))

    def tasks(self, split: str) -> tuple[TaskSpec, ...]:
        """The tasks of one split; composed ones as they were kept, if they were.

        Raises:
            SpecError: There is no such split; otherwise as `generated`.
            ToolServerError: As `generated`.
        """
        if split not in self.splits:
            raise self._no_split(split, self.splits)
        if not self._spec.tasks.splits:
            return tuple(task for task in self._of_files() if task.split == split)
        if self._spec.tasks.goals is None or not all(
            isinstance(server, _ANSWER_ALIKE) for server in self._spec.all_servers
        ):
            return self.generated(split)
        return kept(self._key_of(split), partial(self.generated, split))

    def generated(self, split: str) -> tuple[TaskSpec, ...]:
        """The tasks that generator, goals or environment make of a split now, whatever is kept.

        Raises:
            SpecError: The generator raised, or broke its contract; goals give no such tasks.
            ToolServerError: Goals need the tool server, and it does not start, or died.
        """
        source = self._spec.tasks
        count = source.splits[split]
        reference = source.generator or "the environment"
        environments = self._domain.environments
        if environments is not None:
            tasks: Any = environments.tasks(split)
        elif source.goals is not None:
            tasks = self.composition(split).tasks
        else:
            seed = derive_seed(source.seed, self._spec.id, split)
            tasks = self._domain.python.call(reference, source.loc, split, seed, count)
        return self._held_to_contract(tasks, reference, split)

    def composition(
        self,
        split: str,
        *,
        count: int | None = None,
        seed: int | None = None,
        goals: str | None = None,
    ) -> Composition:
        """Tasks made of its goals, with axes, and why other draws were not kept.

        They are composed on a domain and in an event loop of their own, which nothing else uses meanwhile.

        Args:
            split: Of the tasks.
            count: How many; left out, as many as the domain's file says.
            seed: Likewise.
            goals: `file.py:name` of other goals than those that the file names.

        Raises:
            SpecError: There are no goals or no such split, or these give no such tasks.
            ToolServerError: The tool server does not start, or died.
        """
        source = self._spec.tasks
        reference = goals or source.goals
        if reference is None:
            message = "the domain names no goals to make tasks of; name them under `tasks.goals`"
            raise SpecError([self._located.problem(("tasks",), message)])
        if split not in source.splits:
            raise self._no_split(split, source.splits)
        python = self._domain.python
        found = python.load(reference, source.loc)
        if not isinstance(found, Goals):
            raise self._problem(f"{reference} must be a muarl.goals.Goals, it is {found!r}")
        with python.blaming(reference, source.loc):
            return composed_apart(
                found,
                self._domain.anew(),
                split=split,
                splits=source.splits,
                seed=derive_seed(source.seed if seed is None else seed, self._spec.id, split),
                count=source.splits[split] if count is None else count,
            )

    def _of_files(self) -> list[TaskSpec]:
        return [task for file in load_task_files(self._located) for task in file.spec.tasks]

    def _key_of(self, split: str) -> str:
        """A hash of all that composed tasks follow from, tools among them."""
        shared = self._domain.shared_content
        return content.hashed([shared, self._spec.model_dump(mode="json"), split])

    def _held_to_contract(self, tasks: Any, reference: str, split: str) -> tuple[TaskSpec, ...]:
        count = self._spec.tasks.splits[split]
        if type(tasks) not in (list, tuple):  # one of the author's own class may be anything
            kind = type(tasks).__name__
            raise self._problem(
                f"{reference} must return a list, it returned {kind}; return list(...)"
            )
        wrong = [t for t in tasks if not isinstance(t, TaskSpec) or t.split != split]
        if wrong or len(tasks) != count:
            raise self._problem(
                f"{reference} must return {count} TaskSpec of split {split!r}; "
                f"it returned {len(tasks)}, {len(wrong)} of them not such",
            )
        tasks = [self._validated(task, reference) for task in tasks]
        findings = [*generated_findings(tasks, self._spec), *_no_json(tasks)]
        problems = [self._located.problem(self._spec.tasks.loc, message) for message in findings]
        if problems:
            raise SpecError(problems)
        self._located.refuse(wording_findings(self._spec, tasks))
        return tuple(tasks)

    def _validated(self, task: TaskSpec, reference: str) -> TaskSpec:
        """A generated task, which may have been made or changed without being looked at."""
        said = f"{reference} returned a TaskSpec that is none"
        try:
            task = task.with_personas(self._spec.personas)
            return TaskSpec.model_validate(task.model_dump(warnings=False), strict=True)
        except ValidationError as errors:
            raise self._problem(f"{said}: {in_words(errors)}") from errors
        except RAISED as error:  # boundary: what lacks its fields raises anything
            let_others_pass(error)
            raise self._problem(f"{said}: {blame(error)}") from error

    def _no_split(self, split: str, known: Iterable[str]) -> SpecError:
        message = f"there is no split {split!r}; splits: {', '.join(known)}"
        return SpecError([self._located.problem(("tasks",), message)])

    def _problem(self, message: str) -> SpecError:
        return SpecError([self._located.problem(self._spec.tasks.loc, message)])


def _no_json(tasks: Sequence[TaskSpec]) -> Iterator[str]:
    """What generated tasks hold that no world or call can take."""
    for task in tasks:
        parts = {"world": task.world, "gold": [call.arguments for call in task.gold]}
        for part, value in parts.items():
            if problem := json_problem(value):
                yield f"task {task.id!r}: {part} must be JSON: {problem}"
