"""Columns that a world, or what a query answers, cannot have."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from muarl.world.sql.rules import Mode, Refused, Rules
from muarl.world.sql.tables import Table, quoted
from muarl.world.sql.text import tokens

_NUMBERED = re.compile(r"(.*):[0-9]+", re.DOTALL)


def refuse_defaults(connection: sqlite3.Connection, rules: Rules, table: str) -> None:
    """Refuse defaults that tell the time or draw; others may call what a query may call.

    In CHECKs and generated columns SQLite itself takes none that does.

    Raises:
        Refused: The table has one.
    """
    columns = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    for _, column, _, _, default, *_ in columns:
        if default is None:
            continue
        with rules.mode(Mode.READ):
            try:
                connection.execute(f"SELECT {default}").fetchone()
            except sqlite3.Error as error:
                if "no such column" not in str(error):  # a bare word is a text here
                    raise Refused(
                        f"the default of {column!r} is {default}: a world has no clock and no "
                        "dice of its own; give a value, or let the tool set it"
                    ) from error


def refuse_collations(connection: sqlite3.Connection, table: Table) -> None:
    """Refuse keys of which two spellings are one: in a world's document they would be two.

    Raises:
        Refused: The table has one.
    """
    if table.numbered:  # its keys are numbers, or there are none
        return
    # Only an index tells how a column is compared by itself, whatever its primary key says.
    probe = quoted("_muarl_probe")
    columns = ", ".join(map(quoted, table.key))
    connection.execute(f"CREATE INDEX main.{probe} ON {quoted(table.name)} ({columns})")
    indices = connection.execute(f"PRAGMA index_list({quoted(table.name)})").fetchall()
    compared = [
        (column, collation)
        for _, index, _, origin, *_ in indices
        if origin == "pk" or quoted(index) == probe
        for _, _, column, _, collation, in_key in connection.execute(
            f"PRAGMA index_xinfo({quoted(index)})"
        )
        if in_key
    ]
    connection.execute(f"DROP INDEX main.{probe}")
    for column, collation in compared:
        if collation != "BINARY":
            raise Refused(
                f"the key {column!r} has COLLATE {collation}: a key has one spelling; leave "
                "COLLATE out, and compare with it in the tools' statements"
            )


def refuse_namesakes(columns: Sequence[str], sql: str) -> None:
    """Refuse two columns of one name: which of them is meant could not be told.

    SQLite itself tells those of a subquery, a view or a table apart by a number, `title:1`, which
    it draws once there are five of them.

    Args:
        columns: Names of what is read.
        sql: The statement; a name that is written there is its author's own.

    Raises:
        Refused: Two are the same, but for capitals.
    """
    seen: set[str] = set()
    for column in columns:
        made_up = _NUMBERED.fullmatch(column)
        if made_up and column.lower() not in {t.text.strip("'\"`[]").lower() for t in tokens(sql)}:
            column = made_up[1]
            seen.add(column.lower())
        if column.lower() in seen:
            raise Refused(f"two columns are named {column!r}; give each a name of its own with AS")
        seen.add(column.lower())
