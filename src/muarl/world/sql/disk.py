"""Worlds of tables on disk: an SQLite file, and in it what of the world is no table."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from muarl.json_values import json_problem
from muarl.world.sql.rows import check_json
from muarl.world.sql.rules import Refused
from muarl.world.sql.tables import Row, Table, described, names_in

_BESIDE = "_muarl_beside"
"""The table of what is no table: key, and JSON."""


def write_file(path: Path, tables: sqlite3.Connection, beside: Mapping[str, Any]) -> None:
    """Write a world.

    Args:
        path: Of the file.
        tables: The database that holds its rows.
        beside: What else is in the world, plain.

    Raises:
        FileExistsError: There is one.
        sqlite3.Error: It cannot be written.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists already")
    with closing(sqlite3.connect(path)) as file:
        tables.backup(file)
        file.execute(f"CREATE TABLE {_BESIDE} (key TEXT PRIMARY KEY, json TEXT NOT NULL)")
        values = [(key, json.dumps(value, ensure_ascii=False)) for key, value in beside.items()]
        file.executemany(f"INSERT INTO {_BESIDE} VALUES (?, ?)", values)
        file.commit()


def read_file(
    path: Path, tables: Mapping[str, Table]
) -> tuple[dict[str, dict[str, Row]], dict[str, Any]]:
    """What `write_file` wrote: the rows of the tables, and what was beside them.

    Raises:
        Refused: It cannot be read, or holds something else.
    """
    where = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(where, uri=True)) as file:
            there = {name for kind, name in names_in(file) if kind == "table"}
            if lacking := [name for name in (*tables, _BESIDE) if name not in there]:
                raise Refused(f"{path} holds no world of these tables: there is no {lacking[0]!r}")
            for name, table in tables.items():
                if described(file, name) != table:
                    raise Refused(f"{path}: table {name!r} has other columns there")
            rows = {
                t.name: dict(map(t.document, file.execute(t.read_all))) for t in tables.values()
            }
            beside = dict(file.execute(f"SELECT key, json FROM {_BESIDE}").fetchall())
    except sqlite3.Error as error:
        raise Refused(f"{path} holds no world of these tables: {error}") from error
    for name, of_table in rows.items():
        for key, row in of_table.items():
            check_json((name, key), row)
    return rows, {key: _value(path, key, text, tables) for key, text in beside.items()}


def _value(path: Path, key: Any, text: Any, tables: Mapping[str, Table]) -> Any:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"{path}: {key!r} is no JSON: {error}") from error
    if not isinstance(key, str) or key in tables:
        raise Refused(f"{path}: {key!r} is a table, or no key of a world")
    if problem := json_problem({key: value}):
        raise Refused(f"{path}: {problem}")
    return value
