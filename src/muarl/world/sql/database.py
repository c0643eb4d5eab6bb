"""One SQLite database in memory that stands, in every call, for the world of one dialogue.

A database for each dialogue would cost a copy of all tables. This one holds the domain's tables
once. Before SQL runs for a world, the rows in which it differs from what the database shows are
written; what the SQL changes is noted by triggers, and becomes part of the world only if the whole
call succeeded. So a fork stays as cheap as that of any document, and nothing leaks between
dialogues. It all happens without a pause, in the thread of the event loop.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from muarl.world.compare import plain
from muarl.world.nodes import MapNode
from muarl.world.sql.columns import refuse_collations, refuse_defaults, refuse_namesakes
from muarl.world.sql.disk import read_file, write_file
from muarl.world.sql.rows import RowError, check_column, check_json, exactly, patch_row, table_named
from muarl.world.sql.rules import TOUCHED, Mode, Refused, Rules, refuse_clocks
from muarl.world.sql.shown import Shown
from muarl.world.sql.tables import (
    Row,
    Table,
    described,
    in_key_order,
    names_in,
    quoted,
    referenced,
    says,
)
from muarl.world.sql.text import common_tables, first_word
from muarl.world.sql.transaction import QUERIES, STATEMENTS, Transaction
from muarl.world.world import put

Result = TypeVar("Result")


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
        # One thread at a time uses it, but not always the same one: goals are composed apart, and
        # what is left of them is closed wherever it is noticed that nobody needs it any more.
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, cached_statements=512, check_same_thread=False
        )
        self._connection.execute("PRAGMA recursive_triggers = ON")  # or REPLACE deletes unnoticed
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute(f"CREATE TEMP TABLE {TOUCHED} (name TEXT, key TEXT)")
        self._rules = Rules(self._connection)
        weakref.finalize(self, self._rules.close)
        self._shown = Shown(self._connection, self._rules, self.tables, self.base)

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
        refuse_clocks(statement)
        self._rules.start_counting()
        with self._rules.mode(Mode.SCHEMA, statement):
            self._connection.execute(statement)
        if word != "CREATE":
            return
        for kind, name in names_in(self._connection):
            if name.lower() not in self._rules.tables:
                self._rules.tables.add(name.lower())
                try:
                    if name.lower().startswith("_muarl"):
                        raise Refused(f"the name {name!r} is taken: muarl's own begin with _muarl")
                    take = self._take_view if kind == "view" else self._take_table
                    take(name, statement)
                except Refused:
                    self.tables.pop(name, None)
                    self._rules.tables.remove(name.lower())
                    self._own(f"DROP {kind} IF EXISTS main.{quoted(name)}")
                    raise

    def _take_table(self, name: str, statement: str) -> None:
        """Take a table that was just created for one of the world's.

        Raises:
            Refused: No world can have it.
        """
        with self._rules.mode(Mode.OWN):
            ordered = in_key_order(self._connection, name, statement)
            if ordered is not None:
                self._connection.execute(f"DROP TABLE main.{quoted(name)}")
                self._connection.execute(ordered)
            table = self.tables[name] = described(self._connection, name)
            refuse_namesakes(table.columns, statement)
            refuse_defaults(self._connection, self._rules, name)
            refuse_collations(self._connection, table)
            for trigger in table.triggers():
                self._connection.execute(trigger)

    def _take_view(self, name: str, statement: str) -> None:
        """Compile a view that was just created, which SQLite does not do by itself.

        Raises:
            Refused: No query could read it.
        """
        self._rules.common |= common_tables(statement)
        refuse_namesakes(self.columns(f"SELECT * FROM {quoted(name)}", []), statement)

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
            if columns.count(column) > 1:
                raise RowError((table, column), f"column {column!r} is given twice")
        for number, values in enumerate(rows):
            try:
                with self._rules.mode(Mode.OWN):
                    self._connection.execute(known.insert_of(columns), values)
            except Refused as refused:
                raise RowError((table, str(number)), str(refused)) from refused

    def unorder(self, name: str) -> None:
        """Let the keys of a table, which are nothing but SQLite's numbering, not count.

        Raises:
            RowError: There is no such table, or its keys mean something.
        """
        table = table_named(self.tables, name)
        if not table.numbered:
            message = "its key is the domain's own; only a table that SQLite numbers can be"
            raise RowError((name,), f"table {name!r} cannot be unordered: {message}")
        parents = referenced(self._connection, list(self.tables))
        if table.key_in_row and name.lower() in parents:
            message = f"{parents[name.lower()]!r} refers to its keys, so they count"
            raise RowError((name,), f"table {name!r} cannot be unordered: {message}")
        self.unordered[name] = frozenset(table.key)

    def ready(self, unordered: Sequence[str] = ()) -> None:
        """End the schema: what the tables hold now is what every world begins with.

        Args:
            unordered: Tables whose keys are nothing but SQLite's numbering; those without a key
                are so in any case.

        Raises:
            RowError: A row or a table refers to none, a row is none of a world, or a table cannot
                be unordered.
            Refused: A foreign key is no key of its table.
        """
        for name in (*unordered, *(t.name for t in self.tables.values() if not t.key_in_row)):
            self.unorder(name)
        known = {name.lower() for name in self.tables}
        for parent, child in referenced(self._connection, list(self.tables)).items():
            if parent not in known:
                raise RowError((child,), f"table {child!r} refers to {parent!r}, which is no table")
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
        self._own(f"DELETE FROM {TOUCHED}")
        self._connection.execute("PRAGMA foreign_keys = ON")

    def problem(self, statement: str, names: Sequence[str], *, writes: bool) -> Refused | None:
        """Why a statement with these parameters could not run; None if it could."""
        allowed = STATEMENTS if writes else QUERIES
        if first_word(statement) not in allowed:
            return Refused(f"expected {', '.join(allowed[:-1])} or {allowed[-1]}")
        self._rules.start_counting()
        try:
            refuse_clocks(statement)
            with self._rules.mode(Mode.WRITE if writes else Mode.READ, statement):
                self._connection.execute(f"EXPLAIN {statement}", dict.fromkeys(names)).close()
            if not writes:
                refuse_namesakes(self.columns(statement, names), statement)
        except Refused as refused:
            return refused
        return None

    def columns(self, query: str, names: Sequence[str]) -> list[str]:
        """The columns of what a query answers."""
        self._rules.start_counting()
        with self._rules.mode(Mode.READ, query):
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
        self._shown.show(world)
        self._rules.start_counting()
        with self._shown.transaction():
            result = work(Transaction(self._connection, self._rules))
            written = self._shown.written()
        for (table, key), row in written.items():
            rows = world[table]
            if row is not None:
                rows[key] = row
            elif key in rows:
                del rows[key]
            self._shown.now((table, key), row)
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
            Refused: It cannot be written.
        """
        self._shown.show(world)
        beside = {key: value for key, value in plain(world).items() if key not in self.tables}
        with self._rules.mode(Mode.OWN):
            write_file(path, self._connection, beside)

    def restore(self, world: MapNode, path: Path) -> None:
        """Give a world what a file holds that `save` wrote.

        Raises:
            Refused: The file cannot be read, or holds what the tables do not take.
        """
        found, beside = read_file(path, self.tables)
        for name, rows in found.items():
            present = world[name]
            for key in [key for key in present if key not in rows]:
                del present[key]
            for key, row in rows.items():
                if key not in present or exactly(plain(present[key])) != exactly(row):
                    present[key] = row
        for key in [key for key in world if key not in self.tables and key not in beside]:
            del world[key]
        for key, value in beside.items():
            put(world, key, value)
        self._shown.show(world)

    def _own(self, statement: str) -> None:
        with self._rules.mode(Mode.OWN):
            self._connection.execute(statement)
