"""Whether a domain's SQL is right, beyond its tables: tools, predicates, rows of tasks.

SQLite compiles every statement against the tables; nothing of a tool is run. Problems are reported
all at once, each at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muarl.errors import Problem, SpecError
from muarl.spec.device import DEVICE
from muarl.spec.finding import unknown
from muarl.spec.sql import SqlToolSpec, sql_of
from muarl.spec.sql_seed import fault_at, load_database
from muarl.world.sql import Database, RowError, SqlWorld
from muarl.world.sql.text import parameters, statements

if TYPE_CHECKING:
    from muarl.spec.domain import DomainSpec
    from muarl.spec.explain import Loc
    from muarl.spec.located import Located
    from muarl.spec.task import TasksFile, TaskSpec

_SLOT = re.compile(r"\{([^{}]*)\}")


def sql_problems(domain: Located[DomainSpec]) -> list[Problem]:
    """Everything wrong with a domain's tables, rows and SQL tools."""
    try:
        database = None if domain.spec.world.sql is None else load_database(domain)
    except SpecError as error:
        return list(error.problems)
    problems: list[Problem] = []
    if database is not None:
        problems += _predicate_problems(domain, database, domain.spec, ())
        problems += _state_problems(domain, database)
    for loc, tools in domain.spec.sql_tools:
        message = _of_no_tables(domain.spec, loc)
        if message:
            problems.append(domain.problem(loc, message, at_key=True))
        elif database is not None:
            for name, tool in tools.items():
                problems += _tool_problems(domain, database, tool, (*loc, name))
    return problems


def tasks_problems(
    domain: Located[DomainSpec], files: Iterable[Located[TasksFile]]
) -> Iterator[Problem]:
    """Rows and queries of tasks that the domain's tables do not take."""
    database = load_database(domain)
    device = domain.spec.device
    world = SqlWorld(database, {DEVICE: {}} if device is not None and device.world else None)
    for file in files:
        for index, task in enumerate(file.spec.tasks):
            at = ("tasks", index)
            try:
                world.fork(task.world)
            except RowError as wrong:
                yield file.problem((*at, "world", *wrong.loc), str(wrong))
            yield from _predicate_problems(file, database, task, at)


def _of_no_tables(domain: DomainSpec, loc: Loc) -> str | None:
    """Why tools in SQL, which stand at `loc`, have no tables to ask."""
    if domain.world.sql is None:
        return "tools in SQL need a world of tables; give one under world: sql:"
    if loc[0] == "device" and domain.device is not None and domain.device.world is not None:
        return (
            "tools in SQL ask the domain's tables, and with `device.world` hers see the device's "
            "part alone; keep that part in tables and leave `device.world` out, or write her tools "
            "in Python"
        )
    return None


def _state_problems(domain: Located[DomainSpec], database: Database) -> Iterator[Problem]:
    """Parts of the world that another server keeps, and that are tables."""
    sides: list[tuple[Loc, Any]] = [(("tools",), domain.spec.tools)]
    if domain.spec.device is not None:
        sides.append((("device", "tools"), domain.spec.device.tools))
    for above, servers in sides:
        for index, server in enumerate(servers):
            for key in server.state.keys() & database.tables.keys():
                loc = (*above, index, "state", key)
                message = f"{key!r} is a table of the domain's; name this part otherwise"
                yield domain.problem(loc, message, at_key=True)


def _predicate_problems(
    file: Located[Any], database: Database, holder: DomainSpec | TaskSpec, above: Loc
) -> Iterator[Problem]:
    """Queries of a domain's or a task's own predicates that its tables do not understand."""
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(holder, field) or ()):
            for below, part in predicate.walk():
                if part.sql is None:
                    continue
                loc = (*above, field, index, *below, "sql", "query")
                query, known = part.sql.query, part.sql.parameters
                for at, message in _statement_problems(database, known, query, writes=False):
                    yield file.problem_within(loc, query, at, message)


def _tool_problems(
    domain: Located[DomainSpec], database: Database, tool: SqlToolSpec, loc: Loc
) -> Iterator[Problem]:
    used: set[str] = set()
    whole: dict[Loc, str] = {}
    for at, sql, writes in sql_of(tool):
        named = parameters(sql)
        used |= {name[1:] for name in named}
        found = list(_statement_problems(database, tool.parameters, sql, writes=writes))
        if not found:
            whole[at] = statements(sql)[0].text
        for position, message in found:
            yield domain.problem_within((*loc, *at), sql, position, message)
    for where, wording, query in _wordings(tool):
        if query is not None and query not in whole:
            continue  # it was reported; its columns are not known
        columns = [] if query is None else database.columns(whole[query], list(tool.parameters))
        choices = [*columns, *tool.parameters]
        for slot in _SLOT.findall(wording):
            used.add(slot)
            if slot not in choices:
                message = unknown("column or parameter", slot, choices)
                yield domain.problem((*loc, *where), message)
    for name in tool.parameters:
        if name not in used:
            message = f"parameter {name!r} is not used; use it as :{name} in SQL, or remove it"
            yield domain.problem((*loc, "parameters", name), message, at_key=True)


def _wordings(tool: SqlToolSpec) -> Iterator[tuple[Loc, str, Loc | None]]:
    """Place and text of every template, and the place of the query whose columns it may name."""
    for index, guard in enumerate(tool.guards):
        yield ("guards", index, "error"), guard.error, ("guards", index, "query")
    if tool.result is not None:
        yield ("result",), tool.result, None if tool.query is None else ("query",)


def _statement_problems(
    database: Database, known: Mapping[str, Any], sql: str, *, writes: bool
) -> Iterator[tuple[int, str]]:
    """Positions in one piece of SQL, and what is wrong there."""
    found = statements(sql)
    if len(found) != 1:
        yield (found[1].at if found else 0), f"expected one statement, got {len(found)}"
        return
    wrong = False
    for name, at in parameters(sql).items():
        if name[0] != ":":
            wrong = True
            yield at, f"parameters are written :name, not {name}"
        elif name[1:] not in known:
            wrong = True
            yield at, unknown("parameter", name[1:], known)
    if not wrong:
        refused = database.problem(found[0].text, list(known), writes=writes)
        if refused is not None:
            yield found[0].at + fault_at(found[0].text, refused), str(refused)
