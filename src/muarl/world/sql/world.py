"""A dialogue's world whose rows live in tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.world.nodes import copied
from muarl.world.sql.database import Database
from muarl.world.sql.tables import Row
from muarl.world.world import World


class SqlWorld(World):
    """A document of tables, rows and columns, `books.B1.state`, that can also be asked in SQL.

    Args:
        database: Ready; the world begins with its rows.
    """

    __slots__ = ("database",)

    def __init__(self, database: Database) -> None:
        super().__init__(database.base)
        self.database = database

    @property
    def unordered(self) -> Mapping[str, frozenset[str]]:
        return self.database.unordered

    def fork(self, patch: Mapping[str, Any] | None = None) -> SqlWorld:
        """A new world with the same content, and rows merged over it.

        Args:
            patch: Table to key to columns; a row that is None goes.

        Raises:
            RowError: The tables do not take a row; names it.
        """
        fork = SqlWorld(self.database)
        copied(self, fork)
        if patch:
            self.database.patch(fork, patch)
        return fork

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
        """Write it as an SQLite file, which must not exist yet."""
        self.database.save(self, path)

    def restored(self, path: Path) -> SqlWorld:
        """The world that `save` wrote.

        Raises:
            Refused: The file cannot be read, or has other tables.
        """
        world = SqlWorld(self.database)
        self.database.restore(world, path)
        return world
