"""Load spec files: every problem of a file at once, each with its line and column."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from muarl.errors import Problem, SpecError
from muarl.spec import texts, variables
from muarl.spec.base import Spec
from muarl.spec.document import Node, Place, parse_document
from muarl.spec.domain import TEXTS, DomainSpec
from muarl.spec.explain import describe, explain, missing_field
from muarl.spec.finding import Finding
from muarl.spec.grid import GridSpec
from muarl.spec.grid_references import grid_findings
from muarl.spec.kinds import of_another_kind
from muarl.spec.layers import overlaid, refer_from, setting, with_defaults
from muarl.spec.located import Located, in_order
from muarl.spec.named_files import no_file
from muarl.spec.presets import PREFIX, overlay_file
from muarl.spec.references import domain_findings, tasks_findings, wording_findings
from muarl.spec.run import PATHS, RunSpec
from muarl.spec.run_references import run_findings
from muarl.spec.shape import Shape
from muarl.spec.source import read_source
from muarl.spec.split_references import misspelt_splits, misspelt_wordings
from muarl.spec.suite import SuiteSpec
from muarl.spec.synth import PATHS as SYNTH_PATHS
from muarl.spec.synth import SynthSpec
from muarl.spec.synth_references import synth_findings
from muarl.spec.task import TasksFile, TaskSpec
from muarl.spec.versions import is_old, too_new, upgraded

S = TypeVar("S", bound=Spec)

Paths = Iterable[tuple[str, ...]]

_SAID = 100
"""Problems that are said of a file's values; nobody mends more at once, and each costs a search."""


def load_spec(path: str | Path, model: type[S]) -> Located[S]:
    """Read and validate one file, without looking at what its references name.

    Raises:
        SpecError: Everything that is wrong with the file.
    """
    path = Path(path)
    return _validated(*_document(path, model), path, model)


def load_domain_spec(path: str | Path) -> Located[DomainSpec]:
    """Load a domain's file; a folder stands for its `domain.yaml`.

    Raises:
        SpecError: Everything that is wrong with the file and the names in it.
    """
    path = Path(path)
    domain = load_spec(path / "domain.yaml" if path.is_dir() else path, DomainSpec)
    domain.refuse(domain_findings(domain.spec, domain.path.parent))
    if domain.spec.world.sql is not None or domain.spec.sql_tools:
        from muarl.spec.sql_load import sql_problems  # loads SQLite, which most domains do without

        if problems := sql_problems(domain):
            raise SpecError(in_order(problems))
    return domain


def load_tasks_file(path: str | Path, domain: DomainSpec | None = None) -> Located[TasksFile]:
    """Load a file of tasks.

    Args:
        path: The file.
        domain: If given, what tasks name must exist in it, and tasks that name no personas get all of
            its.

    Raises:
        SpecError: Everything that is wrong with the file and the names in it.
    """
    tasks = load_spec(path, TasksFile)
    if domain is not None:
        named = [task.with_personas(domain.personas) for task in tasks.spec.tasks]
        tasks = replace(tasks, spec=tasks.spec.model_copy(update={"tasks": named}))
    tasks.refuse(tasks_findings(tasks.spec, domain))
    return tasks


def splits_of(
    domain: Located[DomainSpec], files: Sequence[Located[TasksFile]] | None = None
) -> list[str]:
    """Names of a domain's splits, without anything of it being run.

    Args:
        domain: The domain.
        files: Its task files, where they are loaded already.

    Raises:
        SpecError: Everything that is wrong with its task files.
    """
    if domain.spec.tasks.splits:
        return list(domain.spec.tasks.splits)
    loaded = load_task_files(domain) if files is None else files
    return list(dict.fromkeys(task.split for file in loaded for task in file.spec.tasks))


def load_task_files(domain: Located[DomainSpec]) -> list[Located[TasksFile]]:
    """Load all task files that a domain names, in order; no id may occur in two of them.

    Raises:
        SpecError: Everything that is wrong with all of them.
    """
    problems: list[Problem] = []
    loaded: list[Located[TasksFile]] = []
    homes: dict[str, Path] = {}
    for path in _task_paths(domain):
        try:
            file = load_tasks_file(path, domain.spec)
        except SpecError as error:
            problems += error.problems
            continue
        for index, task in enumerate(file.spec.tasks):
            if homes.setdefault(task.id, path) != path:
                message = f"task id {task.id!r} is also in {homes[task.id]}; ids are unique"
                problems.append(file.problem(("tasks", index, "id"), message))
        loaded.append(file)
    wordings = wording_findings(domain.spec, [task for file in loaded for task in file.spec.tasks])
    problems += [domain.problem(f.loc, f.message, at_key=f.at_key) for f in wordings]
    problems += _split_problems(domain, loaded)
    if not problems and domain.spec.world.sql is not None:
        from muarl.spec.sql_load import tasks_problems

        problems += tasks_problems(domain, loaded)
    if problems:
        raise SpecError(in_order(problems))
    return loaded


def _split_problems(
    domain: Located[DomainSpec], files: Iterable[Located[TasksFile]]
) -> Iterator[Problem]:
    tasks = [
        (file, index, task.split) for file in files for index, task in enumerate(file.spec.tasks)
    ]
    used = Counter(split for _, _, split in tasks)
    for found in misspelt_wordings(used, domain.spec):
        yield domain.problem(found.loc, found.message, at_key=found.at_key)
    misspelt = misspelt_splits(used, domain.spec)
    for file, index, split in tasks:
        if split in misspelt:
            message = (
                f"split {split!r} has {used[split]} {'task' if used[split] == 1 else 'tasks'}, "
                f"{misspelt[split]!r} has {used[misspelt[split]]}; did you mean "
                f"{misspelt[split]!r}? Else choose a name that is less like it"
            )
            yield file.problem(("tasks", index, "split"), message)


def load_run(
    path: str | Path,
    *overlays: str | Path,
    settings: Sequence[str] = (),
    without_weights: bool = False,
    trains: bool = True,
) -> Located[RunSpec]:
    """Load a run file, and what is laid over it.

    Args:
        path: The run file.
        overlays: Files that hold a part of one, or `preset:NAME`; each replaces what those before it
            say. Paths in them are relative to themselves.
        settings: Single values, `grpo.lr=1e-6`, which replace what all files say. Paths in them
            are relative to the current folder.
        without_weights: Do not ask for what is made first: folders of models, dialogues of a cold start.
        trains: Refuse what no policy could learn from.

    Raises:
        SpecError: Everything that is wrong with the files and settings, and the names in them.
    """
    run = _laid(path, overlays, settings, RunSpec, PATHS)
    folder = run.path.parent
    run.refuse(run_findings(run.spec, folder, without_weights=without_weights, trains=trains))
    return run


def load_grid(path: str | Path) -> Located[GridSpec]:
    """Load a grid file; the run file that it names is loaded by itself.

    Raises:
        SpecError: Everything that is wrong with the file and the names in it.
    """
    grid = load_spec(path, GridSpec)
    grid.refuse(grid_findings(grid.spec, grid.path.parent))
    return grid


def load_suite_spec(path: str | Path) -> Located[SuiteSpec]:
    """Load a suite's file; the domains that it names are loaded by themselves.

    Raises:
        SpecError: Everything that is wrong with the file, and domains that are not there.
    """
    suite = load_spec(path, SuiteSpec)
    folder = suite.path.parent
    suite.refuse(
        Finding(("members", name, "file"), no_file(folder, member.file))
        for name, member in suite.spec.members.items()
        if not os.path.exists(folder / member.file)
    )
    return suite


def load_synth(
    path: str | Path, *overlays: str | Path, settings: Sequence[str] = ()
) -> Located[SynthSpec]:
    """Load a synthesis file, and what is laid over it; see `load_run`.

    Raises:
        SpecError: Everything that is wrong with the files and settings, and the names in them.
    """
    synth = _laid(path, overlays, settings, SynthSpec, SYNTH_PATHS)
    synth.refuse(synth_findings(synth.spec, synth.path.parent))
    return synth


def _laid(
    path: str | Path,
    overlays: Iterable[str | Path],
    settings: Iterable[str],
    model: type[S],
    paths: Paths,
) -> Located[S]:
    """A file, and what is laid over it, as one.

    Args:
        path: The file.
        overlays: Files that hold a part of one.
        settings: Single values.
        model: What it holds.
        paths: Where in it a file or folder may be named.

    Raises:
        SpecError: Everything that is wrong with the files and settings.
    """
    path = Path(path)
    layers: list[Node] = []
    problems: list[Problem] = []
    unread: list[Problem] = []
    for named in (path, *overlays):
        try:
            layers += _layers(overlay_file(named), path.parent, problems, (), model, paths)
        except SpecError as error:
            unread += error.problems
    if unread:  # what the others lack may stand in the one not read
        raise SpecError(in_order([*problems, *unread]))
    for text in settings:
        try:
            layers.append(setting(text))
        except SpecError as error:
            problems += error.problems
            continue
        problems += variables.fill_in(layers[-1], os.environ)
        refer_from(layers[-1], paths, Path(), path.parent)
    merged = reduce(lambda base, over: overlaid(base, over, Shape(model)), layers)
    return _validated(merged, problems, path, model)


def _layers(
    file: Path,
    folder: Path,
    problems: list[Problem],
    above: tuple[Path, ...],
    model: type[Spec],
    paths: Paths,
) -> list[Node]:
    """A file, and before it those that it is laid over; their paths made relative to `folder`.

    Args:
        file: A whole file, or a part of one.
        folder: That of the whole file.
        problems: Takes what is wrong with the form of the files.
        above: Files that are laid over this one, resolved.
        model: What they hold together.
        paths: As of `_laid`.

    Raises:
        SpecError: One of the files cannot be read, or is laid over itself.
    """
    root, found = _document(file, model)
    problems += found
    refer_from(root, paths, file.parent, folder)
    base = root.children.pop("base", None)
    if base is None:
        return [root]
    root.data.pop("base")
    above = (*above, file.resolve())
    below: list[Node] = []
    unread: list[Problem] = []
    for at, name in enumerate(base.data if isinstance(base.data, list) else [base.data]):
        node = base.children.get(at, base)
        try:
            if not isinstance(name, str):
                raise SpecError(
                    [Problem(*node.place, "expected a list of files, such as [base.yaml]")]
                )
            other = overlay_file(name if name.startswith(PREFIX) else file.parent / name)
            if other.resolve() in above:
                message = f"{name!r} is laid over itself: its base leads back to it"
                raise SpecError([Problem(*node.place, message)])
            if not other.exists():
                raise SpecError([Problem(*node.place, no_file(file.parent, name))])
            below += _layers(other, folder, problems, above, model, paths)
        except SpecError as error:
            # A preset that is unknown has no place but the one that names it.
            unread += [p if p.line else Problem(*node.place, p.message) for p in error.problems]
    if unread:
        raise SpecError(unread)
    return [*below, root]


def _document(path: Path, model: type[Spec]) -> tuple[Node, list[Problem]]:
    """A file that may be one of a model's, or an overlay to one, and what is wrong with its form.

    Raises:
        SpecError: It is no mapping, of another kind, or too new.
    """
    text = read_source(path)
    root, problems = parse_document(text, str(path))
    if not isinstance(root.data, dict):
        got = "the file is empty" if root.data is None else f"this is {describe(root.data)}"
        first = ", ".join(list(model.model_fields)[:4])
        message = f"{got}; expected a mapping with the fields {first}, ..."
        raise SpecError([*problems, Problem(*root.place, message)])
    if other := of_another_kind(root.data, model):
        raise SpecError([Problem(*root.place, other)])
    if newer := too_new(root, model):
        raise SpecError([newer])
    if not problems and is_old(root, model):
        root = upgraded(root, text, model)
    if "version" not in root.data:  # else an overlay's own would do for the file below it
        problems.append(Problem(*root.place, missing_field("version", model)))
    if variables.BEGINS in text:
        may = model in (RunSpec, GridSpec, SynthSpec)
        problems += variables.fill_in(root, os.environ) if may else variables.refuse(root)
    if model is TasksFile:
        with_defaults(root, Shape(TaskSpec))
    if model is DomainSpec:
        problems += texts.read_in(root, TEXTS, path.parent)
    return root, problems


def _validated(root: Node, problems: Sequence[Problem], path: Path, model: type[S]) -> Located[S]:
    """The spec that a document holds.

    Args:
        root: The document, overlays laid over it.
        problems: What was found in it so far.
        path: The first of its files.
        model: What it holds.

    Raises:
        SpecError: That, and everything that the model refuses.
    """
    problems = list(problems)
    noted = {Place(problem.path, problem.line, problem.column) for problem in problems}
    noted.discard(root.place)
    try:
        spec = model.model_validate(root.data, strict=True)
    except ValidationError as errors:
        for number, error in enumerate(errors.errors(include_url=False)):
            place, message = explain(error, root, model)
            if number == _SAID:
                left = errors.error_count() - _SAID
                message = f"here and elsewhere are {left:,} more problems; mend the others first"
                problems.append(Problem(*place, message))
                break
            # A value that is no data was already reported, as the cause of what its mapping lacks.
            lacks = error["type"] in ("value_error", "one_of")
            holder = root.find(root.in_file(error["loc"]))
            caused = lacks and any(child.place in noted for child in holder.children.values())
            if place not in noted and not caused:
                problems.append(Problem(*place, message))
    if problems:
        raise SpecError(in_order(problems))
    return Located(spec, path, root)


def _task_paths(domain: Located[DomainSpec]) -> list[Path]:
    folder = domain.path.parent
    found = (path for name in domain.spec.tasks.files for path in sorted(folder.glob(name)))
    return list(dict.fromkeys(found))
