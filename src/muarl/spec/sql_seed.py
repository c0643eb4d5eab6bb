"""The database of a domain: its tables, and the rows that every world begins with.

Problems are reported all at once, each at its place in the domain's file or in the file of rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.errors import Problem, SpecError
from muarl.spec.device import DEVICE
from muarl.spec.document import Node, parse_document
from muarl.spec.sql import SqlWorldSpec
from muarl.world.sql import Database, Refused, RowError
from muarl.world.sql.rows import table_named
from muarl.world.sql.text import place_in, statements, tokens

if TYPE_CHECKING:
    from muarl.spec.domain import DomainSpec
    from muarl.spec.explain import Loc
    from muarl.spec.located import Located

_NAME = r"('[^']*'|\"[^\"]*\"|[\w.]+)"
_NAMED = re.compile(
    rf"near {_NAME}|no such \w+: {_NAME}|named {_NAME}|column:? {_NAME}|"
    rf"the (?:function|table|key|default of) {_NAME}"
)

_At = Callable[[int, str], Problem]
"""What makes a problem of a position in some text, and of what is wrong there."""


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


class _Seed:
    """Fills a database as a domain's world says."""

    def __init__(self, domain: Located[DomainSpec], database: Database) -> None:
        self._domain = domain
        self._database = database
        self._created: dict[str, Callable[[str], Problem]] = {}
        """What makes a problem with a table, where it was created."""

    def problems(self, spec: SqlWorldSpec) -> Iterator[Problem]:
        loc = ("world", "sql")
        found = list(
            self._define(
                spec.tables, partial(self._domain.problem_within, (*loc, "tables"), spec.tables)
            )
        )
        for index, name in enumerate(spec.files):
            if not found or name.endswith(".sql"):
                found += self._file((*loc, "files", index), name)
        if not found:
            found += [
                self._domain.problem((*loc, "rows", *at), message)
                for at, message in self._rows(spec.rows)
            ]
        yield from found or self._as_a_whole(spec)

    def _as_a_whole(self, spec: SqlWorldSpec) -> Iterator[Problem]:
        """What is wrong with tables and rows that are each right."""
        device = self._domain.spec.device
        if device is not None and device.world is not None and DEVICE in self._created:
            yield self._created[DEVICE](
                f"{DEVICE!r} is where `device.world` lies in the world; name this table otherwise"
            )
        for index, name in enumerate(spec.unordered):
            try:
                self._database.unorder(name)
            except RowError as wrong:
                yield self._domain.problem(("world", "sql", "unordered", index), str(wrong))
        try:
            self._database.ready()
        except Refused as wrong:
            named = [table for table in getattr(wrong, "loc", ())[:1] if table in self._created]
            if named:
                yield self._created[named[0]](str(wrong))
            else:
                yield self._domain.problem(("world", "sql", "tables"), str(wrong))

    def _define(self, sql: str, problem: _At) -> Iterator[Problem]:
        for statement in statements(sql):
            try:
                self._database.define(statement.text)
            except Refused as wrong:
                yield problem(statement.at + fault_at(statement.text, wrong), str(wrong))
            for name in self._database.tables.keys() - self._created.keys():
                at = statement.at + _name_at(statement.text, name)
                self._created[name] = partial(problem, at)

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
        def problem(at: int, message: str) -> Problem:
            return Problem(str(path), *place_in(text, at), message)

        yield from self._define(text, problem)

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


def fault_at(sql: str, wrong: Refused) -> int:
    """Where in a statement it is wrong, if only at the first token that the message names."""
    if wrong.at is not None:
        return wrong.at
    match = _NAMED.search(str(wrong))
    return 0 if match is None else _name_at(sql, next(group for group in match.groups() if group))


def _name_at(sql: str, name: str) -> int:
    """Where a name first stands in a statement; 0 where it does not."""
    whole = name.strip("'\"`").lower()
    last = whole.rpartition(".")[2]
    for token in tokens(sql):
        if token.text.strip("'\"`[]").lower() in (whole, last):
            return token.at
    return 0
