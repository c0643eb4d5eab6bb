"""One SQLite database in memory that stands, in every call, for the world of one dialogue.

A database for each dialogue would cost a copy of all tables. This one holds the domain's tables
once. Before SQL runs for a world, the rows in which it differs from what the database shows are
written; what the SQL changes is noted by triggers, and becomes part of the world only if the whole
call succeeded. So a fork stays as cheap as that of any document, and nothing leaks between
dialogues. It all happens without a pause, in the thread of the event loop.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from muarl.world.compare import plain
from muarl.world.nodes import MapNode
from muarl.world.sql.columns import refuse_collations, refuse_defaults
from muarl.world.sql.rows import RowError, check_column, check_json, exactly, patch_row, table_named
from muarl.world.sql.rules import TOUCHED, Mode, Refused, Rules
from muarl.world.sql.tables import (
    Row,
    Table,
    described,
    in_key_order,
    quoted,
    referenced,
    says,
    table_names,
)
from muarl.world.sql.text import first_word
from muarl.world.sql.transaction import QUERIES, STATEMENTS, Transaction

Result = TypeVar("Result")

_At = tuple[str, str]
"""Table and key of a row."""

MAX_ROWS_WRITTEN = 10_000
"""Rows one call may change; more is a statement that lost its WHERE."""


class Database:
    """The tables of a domain.

    Define tables, insert rows, then `ready`; from then on it answers for worlds, which are
    documents over `base`.

    Example:
        >>> database = Database()
        >>> database.define("CREATE TABLE books (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
        >>> database.insert("books", "B1", {"state": "in"})
        >>> database.ready()
        >>> world = SqlWorld(database)
        >>> database.write(world, ["UPDATE books SET state = 'out' WHERE id = :id"], {"id": "B1"})
        >>> world["books"]["B1"]["state"]
        'out'
    """

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.base: dict[str, dict[str, Row]] = {}
        """Table to key to row, as the domain begins."""
        self.schema: dict[str, str] = {}
        """Table, index or view to the SQL that makes it; known once it is ready."""
        self.unordered: dict[str, frozenset[str]] = {}
        """Tables whose keys do not count when worlds are compared, and the columns of the keys."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self._connection.execute("PRAGMA recursive_triggers = ON")  # or REPLACE deletes unnoticed
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._rules = Rules(self._connection)
        weakref.finalize(self, self._rules.close)
        self._shown: dict[_At, Row | None] = {}
        """Rows in which the database now differs from `base`; None for a row that is not there."""

    def define(self, statement: str) -> None:
        """Run one statement of a schema.

        Raises:
            Refused: It is wrong, or none that a schema may have.
        """
        word = first_word(statement)
        if word not in ("CREATE", *STATEMENTS):
            raise Refused(f"a schema creates tables and inserts rows; {word} is not allowed")
        if word == "CREATE" and says(statement, "AUTOINCREMENT"):
            # Its counter outlives the dialogue that moved it.
            raise Refused("AUTOINCREMENT is not allowed; INTEGER PRIMARY KEY numbers rows as well")
        self._rules.start_counting()
        with self._rules.mode(Mode.SCHEMA):
            self._connection.execute(statement)
        if word != "CREATE":
            return
        for name in set(table_names(self._connection)) - self.tables.keys():
            with self._rules.mode(Mode.OWN):
                ordered = in_key_order(self._connection, name, statement)
                if ordered is not None:
                    self._connection.execute(f"DROP TABLE main.{quoted(name)}")
                    self._connection.execute(ordered)
                try:
                    self.tables[name] = described(self._connection, name)
                    refuse_defaults(self._connection, self._rules, name)
                    refuse_collations(self._connection, name)
                except Refused:
                    self.tables.pop(name, None)
                    self._connection.execute(f"DROP TABLE main.{quoted(name)}")
                    raise

    def insert(self, table: str, key: str, row: Mapping[str, Any]) -> None:
        """Insert a row of the domain, of which the key may be left out.

        Raises:
            RowError: The table does not take it.
        """
        with self._rules.mode(Mode.OWN):
            patch_row(self._connection, self.tables, table, key, row)

    def insert_columns(self, table: str, columns: Sequence[str], rows: Iterator[list[Any]]) -> None:
        """Insert rows whose values are in the order of `columns`.

        Raises:
            RowError: There is no such table or column, or it does not take a row: its position.
        """
        known = table_named(self.tables, table)
        for column in columns:
            check_column(known, (table,), column)
        for number, values in enumerate(rows):
            try:
                with self._rules.mode(Mode.OWN):
                    self._connection.execute(known.insert_of(columns), values)
            except Refused as refused:
                raise RowError((table, str(number)), str(refused)) from refused

    def ready(self, unordered: Sequence[str] = ()) -> None:
        """End the schema: what the tables hold now is what every world begins with.

        Args:
            unordered: Tables whose keys are nothing but SQLite's numbering; those without a key
                are so in any case.

        Raises:
            RowError: A row refers to none, or a table cannot be unordered.
            Refused: A foreign key is no key of its table.
        """
        parents = referenced(self._connection, list(self.tables))
        for name in (*unordered, *(t.name for t in self.tables.values() if not t.key_in_row)):
            table = table_named(self.tables, name)
            if not table.numbered:
                message = "its key is the domain's own; only a table that SQLite numbers can be"
                raise RowError((name,), f"table {name!r} cannot be unordered: {message}")
            if name.lower() in parents:
                message = f"{parents[name.lower()]!r} refers to its keys, so they count"
                raise RowError((name,), f"table {name!r} cannot be unordered: {message}")
            self.unordered[name] = frozenset(table.key)
        with self._rules.mode(Mode.OWN):
            orphans = self._connection.execute("PRAGMA foreign_key_check").fetchall()
        for child, _, parent, _ in orphans:
            raise RowError((child,), f"a row of {child!r} refers to none of {parent!r}")
        for table in self.tables.values():
            rows = self._connection.execute(table.read_all)
            self.base[table.name] = dict(map(table.document, rows))
            for key, row in self.base[table.name].items():
                check_json((table.name, key), row)
        made = self._connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL")
        self.schema = dict(made.fetchall())
        views = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")
        self._rules.tables = {name.lower() for name in (*self.tables, *(v for (v,) in views))}
        self._connection.execute(f"CREATE TEMP TABLE {TOUCHED} (name TEXT, key TEXT)")
        for table in self.tables.values():
            for trigger in table.notes():
                self._connection.execute(trigger)
        self._connection.execute("PRAGMA foreign_keys = ON")

    def problem(self, statement: str, names: Sequence[str], *, writes: bool) -> str | None:
        """Why a statement with these parameters could not run; None if it could."""
        allowed = STATEMENTS if writes else QUERIES
        if first_word(statement) not in allowed:
            return f"expected {', '.join(allowed[:-1])} or {allowed[-1]}"
        self._rules.start_counting()
        try:
            with self._rules.mode(Mode.WRITE if writes else Mode.READ):
                self._connection.execute(f"EXPLAIN {statement}", dict.fromkeys(names)).close()
        except Refused as refused:
            return str(refused)
        return None

    def columns(self, query: str, names: Sequence[str]) -> list[str]:
        """The columns of what a query answers."""
        self._rules.start_counting()
        with self._rules.mode(Mode.READ):
            rows = self._connection.execute(
                f"SELECT * FROM (\n{query}\n) LIMIT 0", dict.fromkeys(names)
            )
            return [column[0] for column in rows.description]

    def query(
        self, world: MapNode, query: str, parameters: Mapping[str, Any], limit: int | None = None
    ) -> list[Row]:
        """Rows that a query answers in a world; see `Transaction.query`."""
        return self.transact(world, lambda call: call.query(query, parameters, limit))

    def write(
        self, world: MapNode, statements: Sequence[str], parameters: Mapping[str, Any]
    ) -> None:
        """Change a world by all of these statements, or not at all.

        Raises:
            Refused: One of them may not run, or failed.
        """

        def work(call: Transaction) -> None:
            for statement in statements:
                call.write(statement, parameters)

        self.transact(world, work)

    def transact(self, world: MapNode, work: Callable[[Transaction], Result]) -> Result:
        """Do `work` on the tables of a world; what it changed is kept only if it does not raise.

        Raises:
            Refused: SQL may not run, or failed.
            RowError: What was written is none that a world can hold.
        """
        self._show(world)
        self._rules.start_counting()
        with self._transaction():
            result = work(Transaction(self._connection, self._rules))
            written = self._written()
        for (table, key), row in written.items():
            rows = world[table]
            if row is not None:
                rows[key] = row
            elif key in rows:
                del rows[key]
            self._shown[table, key] = row
        return result

    def patch(self, world: MapNode, patch: Mapping[str, Any]) -> None:
        """Merge rows over a world: table to key to columns, or to None for a row that goes.

        Raises:
            RowError: The tables do not take a row.
        """

        def work(_: Transaction) -> None:
            with self._rules.mode(Mode.OWN):
                self._connection.execute("PRAGMA defer_foreign_keys = ON")
                for name, rows in patch.items():
                    table_named(self.tables, name)
                    if not isinstance(rows, Mapping):
                        raise RowError((name,), "give rows as a mapping from key to columns")
                    for key, row in rows.items():
                        patch_row(self._connection, self.tables, name, key, row)

        try:
            self.transact(world, work)
        except RowError:
            raise
        except Refused as refused:
            raise RowError((), str(refused)) from refused

    def save(self, world: MapNode, path: Path) -> None:
        """Write a world as an SQLite file.

        Raises:
            FileExistsError: There is one.
        """
        self._show(world)
        if path.exists():
            raise FileExistsError(f"{path} exists already")
        with self._rules.mode(Mode.OWN), closing(sqlite3.connect(path)) as file:
            self._connection.backup(file)

    def restore(self, world: MapNode, path: Path) -> None:
        """Give a world the rows of a file that `save` wrote.

        Raises:
            Refused: The file cannot be read, or has other tables.
        """
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
                rows = {t.name: file.execute(t.read_all).fetchall() for t in self.tables.values()}
        except sqlite3.Error as error:
            raise Refused(f"{path} holds no world of these tables: {error}") from error
        for table in self.tables.values():
            found = dict(map(table.document, rows[table.name]))
            present = world[table.name]
            for key in [key for key in present if key not in found]:
                del present[key]
            for key, row in found.items():
                if key not in present or exactly(plain(present[key])) != exactly(row):
                    present[key] = row

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._own("BEGIN")
        try:
            yield
            self._own("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._own("ROLLBACK")
            raise

    def _own(self, statement: str) -> None:
        with self._rules.mode(Mode.OWN):
            self._connection.execute(statement)

    def _written(self) -> dict[_At, Row | None]:
        """The rows that were touched in this transaction, as they are now.

        Raises:
            Refused: They are too many.
            RowError: One holds what is no JSON.
        """
        written: dict[_At, Row | None] = {}
        with self._rules.mode(Mode.OWN):
            touched = self._connection.execute(
                f"SELECT DISTINCT name, key FROM {TOUCHED}"
            ).fetchall()
            if not touched:
                return written
            if len(touched) > MAX_ROWS_WRITTEN:
                raise Refused(f"it changes more than {MAX_ROWS_WRITTEN:,} rows")
            self._connection.execute(f"DELETE FROM {TOUCHED}")
            for name, key in touched:
                table, values = self.tables[name], json.loads(key)
                found = self._connection.execute(table.read_one, values).fetchone()
                row = None if found is None else table.document(found)[1]
                check_json((name, table.key_of(values)), row)
                written[name, table.key_of(values)] = row
        return written

    def _show(self, world: MapNode) -> None:
        """Let the tables hold what `world` does."""
        wanted = dict(self._differences(world))
        stale: dict[_At, Row | None] = {}
        for at in self._shown.keys() | wanted.keys():
            base = self.base[at[0]].get(at[1])
            row = wanted.get(at, base)
            if exactly(row) != exactly(self._shown.get(at, base)):
                stale[at] = row
        if stale:
            self._put(stale)
        self._shown = wanted

    def _put(self, rows: Mapping[_At, Row | None]) -> None:
        """Write rows as they are: what they refer to was checked when the world was written."""
        self._own("PRAGMA foreign_keys = OFF")
        try:
            with self._transaction(), self._rules.mode(Mode.OWN):
                for name, key in rows:
                    table = self.tables[name]
                    self._connection.execute(table.delete, table.key_values(key))
                for (name, key), row in rows.items():
                    if row is not None:
                        table = self.tables[name]
                        self._connection.execute(table.insert, table.values(key, row))
                self._connection.execute(f"DELETE FROM {TOUCHED}")
        finally:
            self._own("PRAGMA foreign_keys = ON")

    def _differences(self, world: MapNode) -> Iterator[tuple[_At, Row | None]]:
        """Rows of a world that were written since `base`, as they are there."""
        for name, base in self.base.items():
            rows = world._peek(name) if name in world else None
            if rows is base:
                continue
            if not isinstance(rows, MapNode):
                raise RowError((name,), f"the world's {name!r} is no table any more")
            changed = rows._changed() if rows._base is base else None
            for key in {*base, *rows} if changed is None else changed:
                yield (name, key), plain(rows._peek(key)) if key in rows else None
