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
        numbered: SQLite numbers the rows that come without a key.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
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
        if len(self.key) == 1:
            return [key]
        try:
            values = json.loads(key)
        except ValueError:
            values = None
        if not isinstance(values, list) or len(values) != len(self.key):
            raise Refused(
                f"{key!r} is no key of {self.name!r}; write the values of {', '.join(self.key)} as "
                "a JSON list"
            )
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

    def notes(self) -> list[str]:
        """SQL: triggers that note the key of each row that is written."""

        def note(which: str) -> str:
            values = ", ".join(f"{which}.{quoted(column)}" for column in self.key)
            return f"INSERT INTO {TOUCHED} VALUES ({text(self.name)}, json_array({values}));"

        both = f"{note('OLD')} {note('NEW')}"
        return [
            f"CREATE TEMP TRIGGER {quoted(f'_muarl_{event}_{self.name}')} "
            f"AFTER {event} ON main.{quoted(self.name)} BEGIN {noted} END"
            for event, noted in (("INSERT", note("NEW")), ("DELETE", note("OLD")), ("UPDATE", both))
        ]

    def document(self, values: Sequence[Any]) -> tuple[str, Row]:
        """Key and row of what `read_all` or `read_one` gave."""
        width = len(self.key)
        row = dict(zip(self.columns, values[width:], strict=True))
        return self.key_of(values[:width]), row

    def values(self, key: str, row: Mapping[str, Any]) -> list[Any]:
        """What `insert` takes.

        Raises:
            Refused: The row has other columns.
        """
        if row.keys() != set(self.columns):
            raise Refused(f"row {key!r} of {self.name!r} has the columns {', '.join(row)}")
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
    key = tuple(c for c, _, _ in sorted((row for row in info if row[2]), key=lambda row: row[2]))
    for column, kind, place in info:
        if place and not _is_whole_or_text(kind):
            raise Refused(f"column {column!r} is a key; let it be TEXT or INTEGER, not {kind!r}")
    if not key:
        taken = {column.lower() for column in columns}
        key = tuple(name for name in _ROW_NUMBERS if name not in taken)[:1]
        if not key:
            raise Refused(f"table {name!r} has no primary key")
        return Table(name, columns, key, numbered=True)
    return Table(name, columns, key, numbered=not _without_rowid(connection, name))


def table_names(connection: sqlite3.Connection) -> list[str]:
    """Names of the tables, in the order in which they were created."""
    return [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
            "ORDER BY rowid"
        )
    ]


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


def _is_whole_or_text(kind: str) -> bool:
    """Whether a declared type has the affinity of whole numbers or of text (SQLite's rules)."""
    kind = kind.upper()
    return "INT" in kind or any(word in kind for word in ("CHAR", "CLOB", "TEXT"))
