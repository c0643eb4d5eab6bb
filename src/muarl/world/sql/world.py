"""A dialogue's world whose rows live in tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.world.nodes import copied
from muarl.world.sql.database import Database
from muarl.world.sql.tables import Row
from muarl.world.world import World, merge


class SqlWorld(World):
    """A document of tables, rows and columns, `books.B1.state`, that can also be asked in SQL.

    Args:
        database: Ready; the world begins with its rows.
        beside: What else is in the world at its beginning, which is no table.

    Raises:
        ValueError: Something beside has the name of a table.
    """

    __slots__ = ("database",)

    def __init__(self, database: Database, beside: Mapping[str, Any] | None = None) -> None:
        if twice := database.base.keys() & (beside or {}).keys():
            raise ValueError(f"{min(twice)!r} is a table, and cannot be anything else")
        super().__init__({**database.base, **beside} if beside else database.base)
        self.database = database

    @property
    def unordered(self) -> Mapping[str, frozenset[str]]:
        return self.database.unordered

    @property
    def schema(self) -> Mapping[str, str]:
        return self.database.schema

    def fork(self, patch: Mapping[str, Any] | None = None) -> SqlWorld:
        """A new world with the same content, and rows merged over it.

        Args:
            patch: Table to key to columns; a row that is None goes. What is no table is merged.

        Raises:
            RowError: The tables do not take a row; names it.
        """
        fork = self.fresh()
        copied(self, fork)
        if patch:
            tables = self.database.tables
            beside = {k: v for k, v in patch.items() if k not in tables and k in self._base}
            merge(fork, beside)
            self.database.patch(fork, {k: v for k, v in patch.items() if k not in beside})
        return fork

    def fresh(self) -> SqlWorld:
        fresh = SqlWorld(self.database)
        fresh._base = self._base
        return fresh

    def query(
        self, sql: str, parameters: Mapping[str, Any] | None = None, limit: int | None = None
    ) -> list[Row]:
        """Rows that a query answers, each a mapping from column to value; nothing is changed.

        Args:
            sql: One SELECT; parameters are written `:name`.
            parameters: Their values.
            limit: Give no more rows than this.

        Raises:
            Refused: It is wrong, writes, or takes too long.
        """
        return self.database.query(self, sql, parameters or {}, limit)

    def save(self, path: Path) -> None:
        """Write it, with what is no table, as an SQLite file, which must not exist yet."""
        self.database.save(self, path)

    def restored(self, path: Path) -> SqlWorld:
        """The world that `save` wrote.

        Raises:
            Refused: The file cannot be read, or holds what the tables do not take.
        """
        world = self.fresh()
        self.database.restore(world, path)
        return world
