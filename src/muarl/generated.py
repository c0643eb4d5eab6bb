"""Tasks that a domain's Python makes: as many as asked for, and held to what files are held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from muarl.authors import RAISED, blame, let_others_pass
from muarl.environments import Environments
from muarl.errors import SpecError
from muarl.goals import Composition, Goals, Stage, composed_apart
from muarl.json_values import json_problem
from muarl.python_folder import PythonFolder
from muarl.seeds import derive_seed
from muarl.spec import DomainSpec, Located, TaskSpec
from muarl.spec.explain import in_words
from muarl.spec.references import generated_findings, wording_findings


def generated_tasks(
    located: Located[DomainSpec],
    python: PythonFolder,
    stage: Callable[[], Stage],
    split: str,
    environments: Environments | None = None,
) -> tuple[TaskSpec, ...]:
    """The tasks of a split, by the generator, the goals or the environment that the domain's file names.

    Args:
        located: The domain's file.
        python: Its Python.
        stage: Gives a stage of their own to goals, on which they make calls.
        split: One that the file declares.
        environments: The domain's, if it has any: the tasks are theirs.

    Raises:
        SpecError: The generator raised, or broke its contract; goals give no such tasks.
        ToolServerError: Goals need the tool server, and it does not start, or died.
    """
    source = located.spec.tasks
    count = source.splits[split]
    reference, loc = source.generator or "the environment", source.loc
    if environments is not None:
        tasks: Any = environments.tasks(split)
    elif source.goals is not None:
        tasks = composition_of(located, python, stage(), split).tasks
    else:
        seed = derive_seed(source.seed, located.spec.id, split)
        tasks = python.call(reference, loc, split, seed, count)
    if type(tasks) not in (list, tuple):  # one of the author's own class may be anything
        kind = type(tasks).__name__
        raise _problem(
            located, f"{reference} must return a list, it returned {kind}; return list(...)"
        )
    wrong = [t for t in tasks if not isinstance(t, TaskSpec) or t.split != split]
    if wrong or len(tasks) != count:
        raise _problem(
            located,
            f"{reference} must return {count} TaskSpec of split {split!r}; "
            f"it returned {len(tasks)}, {len(wrong)} of them not such",
        )
    tasks = [_validated(located, task, reference) for task in tasks]
    findings = [*generated_findings(tasks, located.spec), *_no_json(tasks)]
    problems = [located.problem(loc, message) for message in findings]
    if problems:
        raise SpecError(problems)
    located.refuse(wording_findings(located.spec, tasks))
    return tuple(tasks)


def composition_of(
    located: Located[DomainSpec],
    python: PythonFolder,
    stage: Stage,
    split: str,
    *,
    count: int | None = None,
    seed: int | None = None,
    goals: str | None = None,
) -> Composition:
    """What the goals of a domain give for a split, in an event loop of its own.

    Args:
        located: The domain's file.
        python: Its Python.
        stage: The domain at work, which nothing else uses meanwhile.
        split: One that the file declares.
        count: Tasks; left out, as many as the file says.
        seed: Likewise.
        goals: `file.py:name` of other goals than those that the file names.

    Raises:
        SpecError: The file names neither goals nor such a split, or these give no such tasks.
        ToolServerError: The tool server does not start, or died.
    """
    source = located.spec.tasks
    reference = goals or source.goals
    if reference is None:
        message = "the domain names no goals to make tasks of; name them under `tasks.goals`"
        raise SpecError([located.problem(("tasks",), message)])
    if split not in source.splits:
        known = ", ".join(source.splits)
        raise SpecError(
            [located.problem(("tasks",), f"there is no split {split!r}; splits: {known}")]
        )
    found = python.load(reference, source.loc)
    if not isinstance(found, Goals):
        raise _problem(located, f"{reference} must be a muarl.goals.Goals, it is {found!r}")
    with python.blaming(reference, source.loc):
        return composed_apart(
            found,
            stage,
            split=split,
            splits=source.splits,
            seed=derive_seed(source.seed if seed is None else seed, located.spec.id, split),
            count=source.splits[split] if count is None else count,
        )


def _validated(located: Located[DomainSpec], task: TaskSpec, reference: str) -> TaskSpec:
    """A generated task, which may have been made or changed without being looked at."""
    said = f"{reference} returned a TaskSpec that is none"
    try:
        task = task.with_personas(located.spec.personas)
        return TaskSpec.model_validate(task.model_dump(warnings=False), strict=True)
    except ValidationError as errors:
        raise _problem(located, f"{said}: {in_words(errors)}") from errors
    except RAISED as error:  # boundary: what lacks its fields raises anything
        let_others_pass(error)
        raise _problem(located, f"{said}: {blame(error)}") from error


def _no_json(tasks: Sequence[TaskSpec]) -> Iterator[str]:
    """What generated tasks hold that no world or call can take."""
    for task in tasks:
        parts = {"world": task.world, "gold": [call.arguments for call in task.gold]}
        for part, value in parts.items():
            if problem := json_problem(value):
                yield f"task {task.id!r}: {part} must be JSON: {problem}"


def _problem(located: Located[DomainSpec], message: str) -> SpecError:
    return SpecError([located.problem(located.spec.tasks.loc, message)])
