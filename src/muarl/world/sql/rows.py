"""Rows as documents give them, and what tables say to them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.errors import did_you_mean
from muarl.json_values import json_problem
from muarl.world.sql.rules import Refused
from muarl.world.sql.tables import Row, Table

_NUMBER = re.compile(r"-?[0-9]{1,19}")


class RowError(Refused):
    """A row that the tables do not take.

    Attributes:
        loc: Where: table, key, column, as far as it is known.
    """

    def __init__(self, loc: Sequence[str], message: str) -> None:
        self.loc = tuple(loc)
        super().__init__(message)


def table_named(tables: Mapping[str, Table], name: str) -> Table:
    """A table.

    Raises:
        RowError: There is none of that name.
    """
    if name not in tables:
        known = did_you_mean(name, tables) or f"; tables: {', '.join(tables)}"
        raise RowError((name,), f"there is no table {name!r}{known}")
    return tables[name]


def check_column(table: Table, loc: Sequence[str], column: str) -> None:
    """Make sure that a table has a column.

    Raises:
        RowError: It has none of that name; `loc` says where it is named.
    """
    if column not in table.columns:
        near = did_you_mean(column, table.columns) or f"; columns: {', '.join(table.columns)}"
        raise RowError((*loc, column), f"table {table.name!r} has no column {column!r}{near}")


def patch_row(
    connection: sqlite3.Connection, tables: Mapping[str, Table], name: str, key: str, row: Any
) -> None:
    """Insert a row, or change the columns that are given of one that is there.

    Args:
        connection: Where the tables are.
        tables: By name.
        name: Of the table.
        key: Of the row; its columns may be left out of `row`.
        row: Column to value; None for a row that goes.

    Raises:
        RowError: The table does not take it.
    """
    table = table_named(tables, name)
    if table.numbered and not _is_number(key):
        raise RowError((name, key), _no_number(table, key))
    try:
        values = table.key_values(key)
        found = connection.execute(table.read_one, values).fetchone()
        if row is None:
            if found is None:
                raise RowError((name, key), f"there is no row {key!r} to take away")
            _check_spelling(table, key, found)
            connection.execute(table.delete, values)
            return
        _check_columns(table, key, row)
        if found is None:
            given = {**dict(zip(table.key, values, strict=True)), **row}
            connection.execute(table.insert_of(list(given)), list(given.values()))
        elif row:
            connection.execute(table.update_of(list(row)), [*row.values(), *values])
        _check_spelling(table, key, connection.execute(table.read_one, values).fetchone())
    except RowError:
        raise
    except (Refused, sqlite3.Error, OverflowError) as error:
        raise RowError((name, key), str(error)) from error


def _is_number(key: str) -> bool:
    return bool(_NUMBER.fullmatch(key)) and -(2**63) <= int(key) < 2**63


def _check_columns(table: Table, key: str, row: Any) -> None:
    """Make sure that what is given of a row are columns of the table, and values of a world."""
    if not isinstance(row, Mapping):
        raise RowError((table.name, key), "give a row as a mapping from column to value")
    for column, value in row.items():
        at = (table.name, key, column)
        check_column(table, at[:2], column)
        if isinstance(value, (Mapping, list)):
            raise RowError(at, "a column holds text, a number or nothing")
        if problem := json_problem({column: value}):
            raise RowError(at, problem)
        if column in table.key and len(table.key) == 1 and str(value) != key:
            raise RowError(at, f"{value!r} is another key than {key!r}; leave it out")


def _check_spelling(table: Table, key: str, found: Sequence[Any] | None) -> None:
    """Make sure that a row, found under `key`, is named by it: `01` finds the row `1`."""
    if found is None:
        raise RowError((table.name, key), "its columns give it another key; leave those out")
    if (spelled := table.document(found)[0]) != key:
        raise RowError((table.name, key), f"write the key {key!r} as {spelled!r}")


def _no_number(table: Table, key: str) -> str:
    """What to say of a key that is text, where SQLite numbers the rows."""
    if table.key_in_row:
        return (
            f"{key!r} is no key of table {table.name!r}: its PRIMARY KEY {table.key[0]!r} is a whole "
            "number"
        )
    first = table.columns[0] if table.columns else "id"
    return (
        f"{key!r} is no key of table {table.name!r}: it has no PRIMARY KEY, so its rows are named by "
        f"their numbers; declare one, such as `{first} TEXT PRIMARY KEY`"
    )


def exactly(row: Row | None) -> Any:
    """A row as SQLite tells values apart: 3 is not 3.0."""
    return row and {column: (type(value), value) for column, value in row.items()}


def check_json(loc: Sequence[str], row: Row | None) -> None:
    """Make sure that a world can hold a row.

    Raises:
        RowError: A value is no JSON.
    """
    problem = json_problem(row or {})
    if problem:
        raise RowError(loc, f"row {loc[1]!r} of {loc[0]!r} is none of a world: {problem}")
