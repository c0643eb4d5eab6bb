"""The one world that the tables show, and what a call writes in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from muarl.world.compare import plain
from muarl.world.nodes import MapNode
from muarl.world.sql.rows import RowError, check_json, exactly
from muarl.world.sql.rules import TOUCHED, Mode, Refused, Rules
from muarl.world.sql.tables import Row, Table

At = tuple[str, str]
"""Table and key of a row."""

MAX_ROWS_WRITTEN = 10_000
"""Rows one call may change; more is a statement that lost its WHERE."""


class Shown:
    """Brings the tables to a world, and tells which rows were written since.

    Args:
        connection: Where the tables are, with triggers that note what is written.
        rules: Of the connection.
        tables: By name.
        base: Table to key to row, as every world begins; the tables hold that now.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        rules: Rules,
        tables: Mapping[str, Table],
        base: Mapping[str, Mapping[str, Row]],
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._tables = tables
        self._base = base
        self._rows: dict[At, Row | None] = {}
        """Rows in which the tables now differ from `base`; None for a row that is not there."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Within the block all is done, or nothing."""
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

    def written(self) -> dict[At, Row | None]:
        """The rows that were touched in this transaction, as they are now.

        Raises:
            Refused: They are too many.
            RowError: One holds what is no JSON.
        """
        written: dict[At, Row | None] = {}
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
                table, values = self._tables[name], json.loads(key)
                found = self._connection.execute(table.read_one, values).fetchone()
                row = None if found is None else table.document(found)[1]
                check_json((name, table.key_of(values)), row)
                written[name, table.key_of(values)] = row
        return written

    def show(self, world: MapNode) -> None:
        """Let the tables hold what `world` does."""
        wanted = dict(self._differences(world))
        stale: dict[At, Row | None] = {}
        for at in self._rows.keys() | wanted.keys():
            base = self._base[at[0]].get(at[1])
            row = wanted.get(at, base)
            if exactly(row) != exactly(self._rows.get(at, base)):
                stale[at] = row
        if stale:
            self._put(stale)
        self._rows = wanted

    def now(self, at: At, row: Row | None) -> None:
        """What was written at a row is the world's own now."""
        self._rows[at] = row

    def _put(self, rows: Mapping[At, Row | None]) -> None:
        """Write rows as they are: what they refer to was checked when the world was written.

        Raises:
            RowError: The tables do not take one.
        """
        self._own("PRAGMA foreign_keys = OFF")
        at = next(iter(rows))
        try:
            with self.transaction(), self._rules.mode(Mode.OWN):
                for at in rows:
                    table = self._tables[at[0]]
                    self._connection.execute(table.delete, table.key_values(at[1]))
                for at, row in rows.items():
                    if row is not None:
                        table = self._tables[at[0]]
                        self._connection.execute(table.insert, table.values(at[1], row))
                self._connection.execute(f"DELETE FROM {TOUCHED}")
        except Refused as wrong:  # Python or `sync` wrote it past the tables
            raise RowError(
                at, f"row {at[1]!r} of {at[0]!r} is none of its table: {wrong}"
            ) from wrong
        finally:
            self._own("PRAGMA foreign_keys = ON")

    def _differences(self, world: MapNode) -> Iterator[tuple[At, Row | None]]:
        """Rows of a world that were written since `base`, as they are there.

        Raises:
            RowError: What is there is no table, or no row.
        """
        for name, base in self._base.items():
            rows = world._peek(name) if name in world else None
            if rows is base:
                continue
            if not isinstance(rows, MapNode):
                raise RowError((name,), f"the world's {name!r} is no table any more")
            changed = rows._changed() if rows._base is base else None
            for key in {*base, *rows} if changed is None else changed:
                row = plain(rows._peek(key)) if key in rows else None
                if row is not None and not isinstance(row, dict):
                    raise RowError((name, key), f"row {key!r} of {name!r} is no mapping of columns")
                yield (name, key), row
