"""From a domain's tables to a database, and whether its tools' SQL is right.

SQLite compiles every statement against the tables; nothing of a tool is run. Problems are reported
all at once, each at its place in the domain's file or in the file of rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.errors import Problem, SpecError
from muarl.spec.document import Node, parse_document
from muarl.spec.finding import Finding, unknown
from muarl.spec.sql import SqlToolSpec, SqlWorldSpec, sql_of
from muarl.world.sql import Database, Refused, RowError, SqlWorld
from muarl.world.sql.rows import table_named
from muarl.world.sql.text import parameters, place_in, statements, tokens

if TYPE_CHECKING:
    from muarl.spec.domain import DomainSpec
    from muarl.spec.explain import Loc
    from muarl.spec.located import Located
    from muarl.spec.predicate import SqlValue
    from muarl.spec.task import TaskSpec

_SLOT = re.compile(r"\{([^{}]*)\}")
_NAMED = re.compile(
    r"near \"([^\"]+)\"|no such \w+: (\S+)|the (?:function|table) (\w+)|named (\S+)|column: (\S+)"
)


def load_database(domain: Located[DomainSpec]) -> Database:
    """The database of a domain whose world is tables.

    Raises:
        SpecError: Everything wrong with tables and rows.
    """
    spec = domain.spec.world.sql
    assert spec is not None
    database = Database()
    seed = _Seed(domain, database)
    problems = list(seed.problems(spec))
    if problems:
        raise SpecError(problems)
    return database


def sql_problems(domain: Located[DomainSpec]) -> list[Problem]:
    """Everything wrong with a domain's tables, rows and SQL tools."""
    try:
        database = None if domain.spec.world.sql is None else load_database(domain)
    except SpecError as error:
        return list(error.problems)
    problems: list[Problem] = []
    if database is not None:
        findings = predicate_findings(database, domain.spec)
        problems = [domain.problem(finding.loc, finding.message) for finding in findings]
    for loc, tools in domain.spec.sql_tools:
        if database is None:
            message = "tools in SQL need a world of tables; give one under world: sql:"
            problems.append(domain.problem(loc, message, at_key=True))
            continue
        for name, tool in tools.items():
            problems += _tool_problems(domain, database, tool, (*loc, name))
    return problems


def predicate_findings(database: Database, holder: DomainSpec | TaskSpec) -> Iterator[Finding]:
    """Queries of a domain's or a task's own predicates that its tables do not understand."""
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(holder, field) or ()):
            for below, part in predicate.walk():
                if part.sql is None:
                    continue
                loc = (field, index, *below, "sql", "query")
                if message := _query_problem(database, part.sql):
                    yield Finding(loc, message)


def _query_problem(database: Database, sql: SqlValue) -> str | None:
    found = statements(sql.query)
    if len(found) != 1:
        return f"expected one statement, got {len(found)}"
    for name in parameters(sql.query):
        if name[0] != ":" or name[1:] not in sql.parameters:
            return unknown("parameter", name.lstrip(":"), sql.parameters)
    return database.problem(found[0].text, list(sql.parameters), writes=False)


def patch_findings(
    database: Database, patches: Mapping[int, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Rows of tasks that the domain's tables do not take; by the tasks' positions."""
    world = SqlWorld(database)
    for index, patch in patches.items():
        try:
            world.fork(patch)
        except RowError as wrong:
            yield Finding(("tasks", index, "world", *wrong.loc), str(wrong))


class _Seed:
    """Fills a database as a domain's world says."""

    def __init__(self, domain: Located[DomainSpec], database: Database) -> None:
        self._domain = domain
        self._database = database

    def problems(self, spec: SqlWorldSpec) -> Iterator[Problem]:
        loc = ("world", "sql")
        found = [
            self._domain.problem_within((*loc, "tables"), spec.tables, at, message)
            for at, message in self._define(spec.tables)
        ]
        for index, name in enumerate(spec.files):
            if not found or name.endswith(".sql"):
                found += self._file((*loc, "files", index), name)
        if not found:
            found += [
                self._domain.problem((*loc, "rows", *at), message)
                for at, message in self._rows(spec.rows)
            ]
        yield from found
        if not found:
            try:
                self._database.ready(spec.unordered)
            except Refused as wrong:
                named = getattr(wrong, "loc", ())
                at = [i for i, table in enumerate(spec.unordered) if table in named]
                where: Loc = (*loc, "unordered", *at[:1]) if at else (*loc, "tables")
                yield self._domain.problem(where, str(wrong))

    def _define(self, sql: str) -> Iterator[tuple[int, str]]:
        """Positions and messages of the statements that are wrong."""
        for statement in statements(sql):
            try:
                self._database.define(statement.text)
            except Refused as wrong:
                yield statement.at + _at_fault(statement.text, str(wrong)), str(wrong)

    def _rows(self, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Loc, str]]:
        for table, of_table in rows.items():
            try:
                table_named(self._database.tables, table)
            except RowError as wrong:
                yield wrong.loc, str(wrong)
                continue
            for key, row in of_table.items():
                try:
                    self._database.insert(table, key, row)
                except RowError as wrong:
                    yield wrong.loc, str(wrong)

    def _file(self, loc: Loc, name: str) -> Iterator[Problem]:
        path = self._domain.resolve(name)
        readers = {".sql": self._sql_file, ".csv": self._csv_file, ".yaml": self._yaml_file}
        if path.suffix not in readers:
            yield self._domain.problem(loc, f"{name!r} is none of {', '.join(readers)}")
            return
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            yield self._domain.problem(loc, f"{name!r} cannot be read: {why}")
            return
        try:
            yield from readers[path.suffix](path, text)
        except SpecError as error:
            yield from error.problems

    def _sql_file(self, path: Path, text: str) -> Iterator[Problem]:
        for at, message in self._define(text):
            yield Problem(str(path), *place_in(text, at), message)

    def _csv_file(self, path: Path, text: str) -> Iterator[Problem]:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        lines: list[int] = []

        def rows(width: int) -> Iterator[list[Any]]:
            for cells in reader:
                if cells:
                    lines.append(reader.line_num)
                    if len(cells) != width:
                        message = f"{len(cells)} cells under {width} columns"
                        raise RowError((path.stem, str(len(lines) - 1)), message)
                    yield [cell if cell else None for cell in cells]

        try:
            columns = next(reader, [])
            self._database.insert_columns(path.stem, columns, rows(len(columns)))
        except RowError as wrong:
            line = lines[int(wrong.loc[1])] if wrong.loc[1:] and lines else 1
            yield Problem(str(path), line, 1, str(wrong))
        except csv.Error as error:
            yield Problem(str(path), reader.line_num, 1, f"not valid CSV: {error}")

    def _yaml_file(self, path: Path, text: str) -> Iterator[Problem]:
        root, problems = parse_document(text, str(path))
        yield from problems
        if not problems and not _is_rows(root):
            message = "expected tables, each a mapping from keys to rows"
            yield Problem(*root.place, message)
        elif not problems:
            for loc, message in self._rows(root.data):
                yield Problem(*root.find(loc).place, message)


def _is_rows(root: Node) -> bool:
    return isinstance(root.data, dict) and all(isinstance(t, dict) for t in root.data.values())


def _tool_problems(
    domain: Located[DomainSpec], database: Database, tool: SqlToolSpec, loc: Loc
) -> Iterator[Problem]:
    used: set[str] = set()
    whole: dict[Loc, str] = {}
    for at, sql, writes in sql_of(tool):
        named = parameters(sql)
        used |= {name[1:] for name in named}
        found = list(_statement_problems(database, tool, sql, writes=writes))
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
    database: Database, tool: SqlToolSpec, sql: str, *, writes: bool
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
        elif name[1:] not in tool.parameters:
            wrong = True
            yield at, unknown("parameter", name[1:], tool.parameters)
    if not wrong:
        message = database.problem(found[0].text, list(tool.parameters), writes=writes)
        if message:
            yield found[0].at + _at_fault(found[0].text, message), message


def _at_fault(sql: str, message: str) -> int:
    """Where in a statement the first token stands that SQLite's message names."""
    match = _NAMED.search(message)
    if match is None:
        return 0
    name = next(group for group in match.groups() if group)
    last = name.rpartition(".")[2].strip("'\"`").lower()
    for token in tokens(sql):
        if token.text.strip("'\"`[]").lower() in (name.lower(), last):
            return token.at
    return 0
