"""What a call does to the tables while its transaction is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from muarl.world.sql.columns import refuse_namesakes
from muarl.world.sql.rules import Mode, Refused, Rules
from muarl.world.sql.tables import Row
from muarl.world.sql.text import first_word

QUERIES = ("SELECT", "WITH", "VALUES")
"""First words of a query."""
STATEMENTS = ("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
"""First words of a statement that writes rows."""


class Transaction:
    """What a call may do while it is under way."""

    def __init__(self, connection: sqlite3.Connection, rules: Rules) -> None:
        self._connection = connection
        self._rules = rules

    def query(
        self, query: str, parameters: Mapping[str, Any], limit: int | None = None
    ) -> list[Row]:
        """Rows that a query answers, `limit` of them at most.

        Raises:
            Refused: It may not run, or failed.
        """
        if first_word(query) not in QUERIES:
            raise Refused(f"a query begins with {', '.join(QUERIES[:-1])} or {QUERIES[-1]}")
        with self._rules.mode(Mode.READ, query):
            rows = self._connection.execute(query, parameters)
            columns = [column[0] for column in rows.description]
            found = rows.fetchall() if limit is None else rows.fetchmany(limit)
            rows.close()
        refuse_namesakes(columns, query)
        return [dict(zip(columns, row, strict=True)) for row in found]

    def write(self, statement: str, parameters: Mapping[str, Any]) -> None:
        """Run a statement.

        Raises:
            Refused: It may not run, or failed.
        """
        with self._rules.mode(Mode.WRITE, statement):
            self._connection.execute(statement, parameters).close()
