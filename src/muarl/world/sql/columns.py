"""Columns that a world cannot have, found when their table is made."""

from __future__ import annotations

import sqlite3

from muarl.world.sql.rules import Mode, Refused, Rules
from muarl.world.sql.tables import quoted


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


def refuse_collations(connection: sqlite3.Connection, table: str) -> None:
    """Refuse keys of which two spellings are one: in a world's document they would be two.

    Raises:
        Refused: The table has one.
    """
    indices = connection.execute(f"PRAGMA index_list({quoted(table)})").fetchall()
    for _, index, _, origin, *_ in indices:
        if origin != "pk":
            continue
        columns = connection.execute(f"PRAGMA index_xinfo({quoted(index)})").fetchall()
        for _, _, column, _, collation, in_key in columns:
            if in_key and collation != "BINARY":
                raise Refused(
                    f"the key {column!r} has COLLATE {collation}: a key has one spelling; leave "
                    "COLLATE out, and compare with it in the tools' statements"
                )
