"""Tables as documents: which columns name a row, and the SQL that reads and writes one.

Every row has a key that is text: the value of its primary key; for a key of several columns, their
values as a JSON list; where a table has no key, its number. Rows of a table lie in the order of
their keys, so that what a query without ORDER BY answers is decided by what the tables hold.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muarl.json_values import json_problem
from muarl.world.sql.rules import TOUCHED, Refused
from muarl.world.sql.text import tokens, trailing_words

_ROW_NUMBERS = ("rowid", "_rowid_", "oid")

Row = dict[str, Any]
"""Column to value: None, int, float or str."""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: As it was created.
        columns: In order; computed ones are left out.
        key: Columns that name a row; the number of the row where there are none.
        kinds: What each of these holds, as SQLite calls it: "integer" or "text".
        numbered: SQLite numbers the rows that come without a key.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    kinds: tuple[str, ...]
    numbered: bool

    @property
    def key_in_row(self) -> bool:
        """Whether the key is part of the row."""
        return self.key[0] in self.columns

    def key_of(self, values: Sequence[Any]) -> str:
        """The key of the row whose key columns hold `values`."""
        return str(values[0]) if len(values) == 1 else json.dumps(list(values), ensure_ascii=False)

    def key_values(self, key: str) -> list[Any]:
        """The values of the key columns, one for each.

        Raises:
            Refused: `key` is none of this table.
        """
        if problem := json_problem(key):  # half a surrogate pair, which SQLite cannot be given
            raise Refused(f"{key!r} is no key: {problem}")
        if len(self.key) == 1:
            return [key]
        try:
            values = json.loads(key, parse_constant=lambda _: [])
        except (ValueError, RecursionError):
            values = None
        if (
            not isinstance(values, list)
            or len(values) != len(self.key)
            or any(isinstance(value, (list, dict)) for value in values)
        ):
            raise Refused(
                f"{key!r} is no key of {self.name!r}; write the values of {', '.join(self.key)} as "
                "a JSON list"
            )
        if problem := json_problem([value for value in values if isinstance(value, str)]):
            raise Refused(f"{key!r} is no key: {problem}")
        return values

    @cached_property
    def read_all(self) -> str:
        """SQL: key and columns of every row."""
        columns = ", ".join(map(quoted, (*self.key, *self.columns)))
        return f"SELECT {columns} FROM {quoted(self.name)}"

    @cached_property
    def read_one(self) -> str:
        """SQL: key and columns of the row with a key."""
        return f"{self.read_all} WHERE {self._is_key}"

    @cached_property
    def delete(self) -> str:
        """SQL: the row with a key goes."""
        return f"DELETE FROM {quoted(self.name)} WHERE {self._is_key}"

    @cached_property
    def insert(self) -> str:
        """SQL: a whole row; before its columns the number, where that is its key."""
        return self.insert_of(self.columns if self.key_in_row else (*self.key, *self.columns))

    def insert_of(self, columns: Sequence[str]) -> str:
        """SQL: a row of which these columns are given."""
        if not columns:
            return f"INSERT INTO {quoted(self.name)} DEFAULT VALUES"
        names, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
        return f"INSERT INTO {quoted(self.name)} ({names}) VALUES ({marks})"

    def update_of(self, columns: Sequence[str]) -> str:
        """SQL: these columns of the row with a key."""
        setting = ", ".join(f"{quoted(column)} = ?" for column in columns)
        return f"UPDATE {quoted(self.name)} SET {setting} WHERE {self._is_key}"

    @property
    def _is_key(self) -> str:
        return " AND ".join(f"{quoted(column)} = ?" for column in self.key)

    def triggers(self) -> list[str]:
        """SQL: what refuses a key that is none, and notes the key of each row that is written."""

        def note(which: str) -> str:
            values = ", ".join(f"{which}.{quoted(column)}" for column in self.key)
            return f"INSERT INTO {TOUCHED} VALUES ({text(self.name)}, json_array({values}));"

        check, new, old = self._check, note("NEW"), note("OLD")
        return [
            f"CREATE TEMP TRIGGER {quoted(f'_muarl_{event}_{self.name}')} "
            f"AFTER {event} ON main.{quoted(self.name)} BEGIN {done} END"
            for event, done in (
                ("INSERT", f"{check} {new}"),
                ("DELETE", old),
                ("UPDATE", f"{check} {old} {new}"),
            )
        ]

    @property
    def _check(self) -> str:
        if self.numbered:
            last = 2**63 - 1
            message = (
                f"there is no row {last} of {self.name!r}: after it SQLite draws the next number"
            )
            return _refusal(f"NEW.{quoted(self.key[0])} = {last}", message)
        said = {"integer": "INTEGER: a whole number", "text": "TEXT: no BLOB"}
        return " ".join(
            _refusal(
                f"typeof(NEW.{quoted(column)}) <> '{kind}'",
                f"the key {column!r} of {self.name!r} is {said[kind]}",
            )
            for column, kind in zip(self.key, self.kinds, strict=True)
        )

    def document(self, values: Sequence[Any]) -> tuple[str, Row]:
        """Key and row of what `read_all` or `read_one` gave."""
        width = len(self.key)
        row = dict(zip(self.columns, values[width:], strict=True))
        return self.key_of(values[:width]), row

    def values(self, key: str, row: Mapping[str, Any]) -> list[Any]:
        """What `insert` takes.

        Raises:
            Refused: The row has other columns, or another key.
        """
        if row.keys() != set(self.columns):
            raise Refused(f"row {key!r} of {self.name!r} has the columns {', '.join(row)}")
        if self.key_in_row and (held := self.key_of([row[c] for c in self.key])) != key:
            raise Refused(f"row {key!r} of {self.name!r} holds the key {held!r}")
        values = [row[column] for column in self.columns]
        return values if self.key_in_row else [key, *values]


def in_key_order(connection: sqlite3.Connection, name: str, statement: str) -> str | None:
    """The text that creates a table anew, so that its rows lie in the order of their keys.

    Args:
        connection: Where `statement` has created it.
        name: Of the table.
        statement: The CREATE TABLE.

    Returns:
        None where they do so already: its key is a whole number, or it has none.
    """
    # A primary key with an index of its own is no other name of the row's number.
    origins = connection.execute("SELECT origin FROM pragma_index_list(?)", (name,))
    if _without_rowid(connection, name) or ("pk",) not in origins.fetchall():
        return None
    return f"{statement}{',' if trailing_words(statement) else ''} WITHOUT ROWID"


def described(connection: sqlite3.Connection, name: str) -> Table:
    """A table that was created.

    Raises:
        Refused: Its key is of a kind whose text would not tell rows apart.
    """
    info = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    columns = tuple(column for column, _, _ in info)
    keys = sorted((row for row in info if row[2]), key=lambda row: row[2])
    for column, declared, _ in keys:
        if _kind(declared) is None:
            raise Refused(
                f"column {column!r} is a key; let it be TEXT or INTEGER, not {declared!r}"
            )
    if not keys:
        taken = {column.lower() for column in columns}
        key = tuple(name for name in _ROW_NUMBERS if name not in taken)[:1]
        if not key:
            raise Refused(f"table {name!r} has no primary key")
        return Table(name, columns, key, ("integer",), numbered=True)
    kinds = tuple(_kind(declared) or "" for _, declared, _ in keys)
    key = tuple(column for column, _, _ in keys)
    return Table(name, columns, key, kinds, numbered=not _without_rowid(connection, name))


def names_in(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Tables and views, "table" or "view" and the name, in the order in which they were created."""
    return connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid"
    ).fetchall()


def referenced(connection: sqlite3.Connection, names: Sequence[str]) -> dict[str, str]:
    """Table to the first table that refers to it, both in lower case."""
    found: dict[str, str] = {}
    for name in names:
        for (parent,) in connection.execute(
            'SELECT "table" FROM pragma_foreign_key_list(?)', (name,)
        ):
            found.setdefault(parent.lower(), name)
    return found


def says(statement: str, word: str) -> bool:
    """Whether a statement has `word`, which is in capitals, as a word of its own."""
    return any(t.kind == "word" and t.text.upper() == word for t in tokens(statement))


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _without_rowid(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", (name,)
    )
    return bool(found.fetchone()[0])


def _kind(declared: str) -> str | None:
    """What a column of a declared type holds, if that is whole numbers or text (SQLite's rules)."""
    declared = declared.upper()
    if "INT" in declared:
        return "integer"
    return "text" if any(word in declared for word in ("CHAR", "CLOB", "TEXT")) else None


def _refusal(condition: str, message: str) -> str:
    """SQL, in a trigger: what was done is undone where a condition holds."""
    return f"SELECT RAISE(ABORT, {text(message)}) WHERE {condition};"
