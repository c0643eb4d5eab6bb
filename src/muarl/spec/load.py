"""Load spec files: every problem of a file at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from muarl.errors import Problem, SpecError
from muarl.spec.base import Spec
from muarl.spec.document import MAX_CHARS, Node, Place, parse_document
from muarl.spec.domain import DomainSpec
from muarl.spec.explain import Loc, describe, explain
from muarl.spec.references import Finding, domain_findings, run_findings, tasks_findings
from muarl.spec.run import RunSpec
from muarl.spec.schema import KINDS
from muarl.spec.task import TasksFile

S = TypeVar("S", bound=Spec)

NEWEST_VERSION = 1
"""Newest form of spec files that this muarl reads."""


@dataclass(frozen=True)
class Located(Generic[S]):
    """A spec and the file it came from, so that later findings still name a line.

    Attributes:
        spec: What the file says.
        path: The file, as the user named it.
        root: Its document, with the place of every key and value.
    """

    spec: S
    path: Path
    root: Node

    def resolve(self, reference: str) -> Path:
        """A file named in the spec, which is relative to the spec."""
        return self.path.parent / reference

    def problem(self, loc: Loc, message: str, *, at_key: bool = False) -> Problem:
        """A problem with the field at `loc`, `("tasks", 3, "gold")`.

        Args:
            loc: Path to the field; where it was left out, the nearest mapping above is named.
            message: What is wrong, what was expected, what to do.
            at_key: Point at the key instead of its value.
        """
        loc = self.root.in_file(loc)
        place = self.root.key_place(loc) if at_key and loc else self.root.find(loc).place
        return Problem(str(self.path), *place, message)

    def problem_within(self, loc: Loc, text: str, at: int, message: str) -> Problem:
        """A problem within the text of the field at `loc`.

        Args:
            loc: Path to the field.
            text: Its text.
            at: Position in the text.
            message: What is wrong, what was expected, what to do.
        """
        place = self.root.find(self.root.in_file(loc)).place
        return Problem(str(self.path), *(_place_within(self.path, place, text, at)), message)

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Raise what was found in this file, if anything.

        Raises:
            SpecError: All findings, in the file's order.
        """
        problems = [self.problem(f.loc, f.message, at_key=f.at_key) for f in findings]
        if problems:
            raise SpecError(in_order(problems))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems by file and place, each said once."""
    return sorted(set(problems), key=lambda p: (p.path, p.line, p.column, p.message))


def load_spec(path: str | Path, model: type[S]) -> Located[S]:
    """Read and validate one file, without looking at what its references name.

    Raises:
        SpecError: Everything that is wrong with the file.
    """
    path = Path(path)
    root, problems = parse_document(_read(path), str(path))
    if not isinstance(root.data, dict):
        got = "the file is empty" if root.data is None else f"this is {describe(root.data)}"
        first = ", ".join(list(model.model_fields)[:4])
        message = f"{got}; expected a mapping with the fields {first}, ..."
        raise SpecError([*problems, Problem(str(path), *root.place, message)])
    if other := _of_another_kind(root.data, model):
        raise SpecError([Problem(str(path), *root.place, other)])
    if too_new := _too_new(root):
        raise SpecError([Problem(str(path), *too_new)])
    noted = {Place(problem.line, problem.column) for problem in problems}
    try:
        spec = model.model_validate(root.data, strict=True)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            place, message = explain(error, root, model)
            if place not in noted:  # a value that is no data was already reported, as the cause
                problems.append(Problem(str(path), *place, message))
    if problems:
        raise SpecError(in_order(problems))
    return Located(spec, path, root)


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
        domain: If given, personas and wordings that tasks name must exist in it.

    Raises:
        SpecError: Everything that is wrong with the file and the names in it.
    """
    tasks = load_spec(path, TasksFile)
    tasks.refuse(tasks_findings(tasks.spec, domain))
    return tasks


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
    if not problems and domain.spec.world.sql is not None:
        problems += _patch_problems(domain, loaded)
    if problems:
        raise SpecError(in_order(problems))
    return loaded


def _patch_problems(
    domain: Located[DomainSpec], files: Iterable[Located[TasksFile]]
) -> Iterator[Problem]:
    """Rows and queries of tasks that the domain's tables do not take."""
    from muarl.spec.sql_load import load_database, patch_findings, predicate_findings

    database = load_database(domain)
    for file in files:
        patches = {index: task.world for index, task in enumerate(file.spec.tasks) if task.world}
        for finding in patch_findings(database, patches):
            yield file.problem(finding.loc, finding.message)
        for index, task in enumerate(file.spec.tasks):
            for finding in predicate_findings(database, task):
                yield file.problem(("tasks", index, *finding.loc), finding.message)


def load_run(path: str | Path) -> Located[RunSpec]:
    """Load a run file.

    Raises:
        SpecError: Everything that is wrong with the file and the names in it.
    """
    run = load_spec(path, RunSpec)
    run.refuse(run_findings(run.spec, run.path.parent))
    return run


def kind_of(path: str | Path) -> str:
    """What kind of spec file this is by its fields, sound or not: a key of `KINDS`.

    Raises:
        SpecError: It cannot be read.
    """
    root, _ = parse_document(_read(Path(path)), str(path))
    return _nearest_kinds(root.data)[0] if isinstance(root.data, dict) else "domain"


def _nearest_kinds(data: dict[str, object]) -> list[str]:
    """Kinds of spec files, those first whose fields most keys are."""
    return sorted(KINDS, key=lambda kind: -_num_known(data, KINDS[kind]))


def _num_known(data: dict[str, object], model: type[Spec]) -> int:
    return len(data.keys() & model.model_fields.keys())


def _of_another_kind(data: dict[str, object], model: type[Spec]) -> str:
    """What to say of a file that is a sound one of another kind; "" if it is not."""
    kind = _nearest_kinds(data)[0]
    expected = next((name for name, one in KINDS.items() if one is model), kind)
    other = KINDS[kind]
    required = {name for name, field in other.model_fields.items() if field.is_required()}
    # If it may be either, what is wrong with it says more.
    if required - data.keys() or _num_known(data, other) <= _num_known(data, model):
        return ""
    fields = [name for name in other.model_fields if name in data][1:5]
    return f"this is a {kind} file (it has {', '.join(fields)}); expected a {expected} file"


def _task_paths(domain: Located[DomainSpec]) -> list[Path]:
    folder = domain.path.parent
    found = (path for name in domain.spec.tasks.files for path in sorted(folder.glob(name)))
    return list(dict.fromkeys(found))


def _place_within(path: Path, place: Place, text: str, at: int) -> Place:
    """Where position `at` of a scalar's text stands in its file; at worst, where it begins."""
    source = _read(path).splitlines()
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    wanted = text.split("\n")[line]
    first = source[place.line - 1][place.column - 1 :]
    if first.startswith("|"):
        number, indented = place.line + 1 + line, True
    elif line == 0 and first.lstrip("'\"").startswith(wanted):
        number, indented = place.line, False
    else:
        return place
    found = source[number - 1] if number <= len(source) else ""
    begins = len(found) - len(wanted) if indented else found.find(wanted, place.column - 1)
    if begins < 0 or found[begins : begins + len(wanted)] != wanted:
        return place
    return Place(number, begins + column + 1)


def _too_new(root: Node) -> tuple[int, int, str] | None:
    version = root.data.get("version")
    if type(version) is not int or version <= NEWEST_VERSION:
        return None
    message = (
        f"version {version} is newer than this muarl reads ({NEWEST_VERSION}); "
        f"update it with `pip install -U muarl`"
    )
    return (*root.children["version"].place, message)


def _read(path: Path) -> str:
    """The file's text.

    Raises:
        SpecError: It is not there, not readable, too big, or not UTF-8.
    """
    try:
        if path.stat().st_size > 4 * MAX_CHARS:
            raise SpecError([Problem(str(path), 0, 0, "the file is too big for a spec; split it")])
        raw = path.read_bytes()
    except FileNotFoundError:
        raise SpecError([Problem(str(path), 0, 0, f"no such file{_near(path)}")]) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SpecError([Problem(str(path), 0, 0, f"cannot be read: {why}")]) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        line = before.count(b"\n") + 1
        raise SpecError([Problem(str(path), line, column, message)]) from None


def _near(path: Path) -> str:
    """A name like the missing one that does exist beside it."""
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(path.name, beside, n=1)
    return f"; did you mean '{path.with_name(near[0])}'?" if near else ""
