"""What SQL of a domain may do: nothing but what is listed here.

SQLite asks about every action when a statement is compiled. Files, other databases, pragmas,
extensions and SQLite's own tables are out of reach; so are functions whose result is not decided by
their arguments (law L5). Statements are also held to sizes and to a number of steps.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from muarl.world.sql.clocks import DATE_FUNCTIONS, clock_in, tells_time
from muarl.world.sql.text import common_tables

MAX_STEPS = 5_000_000
"""Steps of SQLite's virtual machine one call may take: well under a second. Counted, not timed, so
that the same call comes out the same on a loaded machine (law L5)."""
MAX_CPU_S = 10.0
"""Seconds of processor time one call may take. Steps bound it a hundred times lower, unless each of them
works on texts of a megabyte."""
MAX_GROWTH = 1 << 30
"""Bytes of memory the process may grow by in a call, beyond the most that it ever had."""
_STEPS_AT_ONCE = 1_000
"""So exactly are they counted: a statement that ran before goes on where its last run stopped."""

_SIZES = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # of a value or a row, in bytes
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,  # matching may take quadratic time
}

_FUNCTIONS = frozenset(
    (
        *("abs", "ceil", "ceiling", "exp", "floor", "ln", "log", "log10", "log2", "mod", "pow"),
        *("power", "round", "sign", "sqrt", "trunc"),
        *("char", "concat", "concat_ws", "format", "glob", "hex", "instr", "length", "like"),
        *("lower", "ltrim", "printf", "quote", "replace", "rtrim", "substr", "substring", "trim"),
        *("typeof", "unicode", "upper"),
        *("coalesce", "ifnull", "iif", "likelihood", "likely", "nullif", "unlikely"),
        *("avg", "count", "group_concat", "max", "min", "string_agg", "sum", "total"),
        *("cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value"),
        *("ntile", "percent_rank", "rank", "row_number"),
        *("->", "->>", "json", "json_array", "json_array_length", "json_extract"),
        *("json_group_array", "json_group_object", "json_insert", "json_object", "json_patch"),
        *("json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid"),
        *DATE_FUNCTIONS,
    )
)

_TABLE_FUNCTIONS = frozenset(("json_each", "json_tree"))

_HIDDEN = ("sqlite_", "_muarl", "pragma_")
"""What the names of tables begin with that are not a domain's."""
_SCHEMA_TABLES = ("sqlite_master", "sqlite_temp_master")

TOUCHED = "_muarl_touched"
"""Temporary table that takes up which rows were written."""

_NAMES = {
    value: name.removeprefix("SQLITE_").replace("_", " ")
    for name, value in vars(sqlite3).items()
    if name
    in {
        *("SQLITE_ATTACH", "SQLITE_DETACH", "SQLITE_PRAGMA", "SQLITE_TRANSACTION"),
        *("SQLITE_SAVEPOINT", "SQLITE_ALTER_TABLE", "SQLITE_ANALYZE", "SQLITE_REINDEX"),
        *("SQLITE_CREATE_TRIGGER", "SQLITE_CREATE_TEMP_TABLE", "SQLITE_CREATE_TABLE"),
        *("SQLITE_CREATE_INDEX", "SQLITE_CREATE_VIEW", "SQLITE_CREATE_TEMP_TRIGGER"),
        *("SQLITE_CREATE_TEMP_VIEW", "SQLITE_CREATE_TEMP_INDEX", "SQLITE_DROP_TABLE"),
        *("SQLITE_DROP_INDEX", "SQLITE_DROP_VIEW", "SQLITE_CREATE_VTABLE", "SQLITE_DROP_VTABLE"),
        *("SQLITE_INSERT", "SQLITE_UPDATE", "SQLITE_DELETE"),
    }
}


class Refused(ValueError):
    """SQL that may not run, or cannot; the message says why.

    Attributes:
        at: Position in the statement, where it is known.
    """

    def __init__(self, message: str, at: int | None = None) -> None:
        self.at = at
        super().__init__(message)


class Exhausted(Refused):
    """SQL that took more of this machine than a call may.

    On another it might have come through, so it is a fault, and no answer (law L5).
    """


def refuse_clocks(statement: str) -> None:
    """Refuse a statement in which a call is written that tells the time.

    What only its arguments decide is refused when it is called.

    Raises:
        Refused: There is one; with its position.
    """
    if clock := clock_in(statement):
        name, at = clock
        raise Refused(_no_clock(name), at)


def _no_clock(name: str) -> str:
    return f"{name}() may not ask for the time: give it a date"


def peak_memory() -> int:
    """Bytes of memory that the process had at most; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Mode(Enum):
    """What may run now."""

    OWN = "own"
    """What muarl itself has written."""
    SCHEMA = "schema"
    """Tables, indexes, views and rows of a domain."""
    READ = "read"
    WRITE = "write"


_WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}
_DEFINES = {
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_REINDEX,  # part of creating an index
}


class Rules:
    """Watches over one connection.

    Args:
        connection: The connection; from now on nothing runs on it outside a `mode`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.tables: set[str] = set()
        """Tables and views that SQL may name, in lower case."""
        self.common: set[str] = set()
        """Names that WITH gives to queries within views, likewise."""
        self._connection = connection
        self._mode = Mode.OWN
        self._statement = ""
        self._denied = ""
        self._steps = 0
        self._until = self._most = 0.0
        self._exhausted = ""
        self._dates = sqlite3.connect(":memory:", check_same_thread=False)
        for limit, size in _SIZES.items():
            connection.setlimit(limit, size)
        for name in DATE_FUNCTIONS:
            connection.create_function(name, -1, self._date_function(name), deterministic=True)
        # It fills in SQLite's own tables when it is first used, which nothing may do later.
        connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._step, _STEPS_AT_ONCE)

    def close(self) -> None:
        """Close the connection."""
        self._dates.close()
        self._connection.close()

    @contextmanager
    def mode(self, mode: Mode, statement: str = "") -> Iterator[None]:
        """Within the block, what `mode` says may run.

        Args:
            mode: What may run.
            statement: What is to run, where the domain has written it.

        Raises:
            Refused: SQLite would not run something, or gave up on it.
            Exhausted: It took more of the machine than it may.
        """
        before, self._mode, self._denied = (self._mode, self._statement), mode, ""
        self._exhausted = ""
        self._statement = statement
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            if self._exhausted:
                raise Exhausted(self._exhausted) from None
            raise Refused(self._why(error)) from error
        except MemoryError:
            raise Exhausted("it takes more memory than there is") from None
        except OverflowError as error:
            raise Refused("an integer is beyond 64 bits") from error
        finally:
            self._mode, self._statement = before

    def start_counting(self) -> None:
        """A call, or a statement of a schema, begins: it may take so much from now on."""
        self._steps = MAX_STEPS
        self._until = time.thread_time() + MAX_CPU_S
        self._most = peak_memory() + MAX_GROWTH

    def _date_function(self, name: str) -> Callable[..., Any]:
        """SQLite's own, which computes with dates but does not tell today's (law L5)."""

        def compute(*arguments: Any) -> Any:
            if tells_time(name, arguments):
                self._denied = _no_clock(name)
                raise ValueError(self._denied)
            marks = ", ".join("?" * len(arguments))
            return self._dates.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]

        return compute

    def _step(self) -> int:
        """Whether SQLite is to give up."""
        self._steps -= _STEPS_AT_ONCE
        if self._mode is Mode.OWN:
            return 0
        if time.thread_time() > self._until:
            self._exhausted = f"it takes more than {MAX_CPU_S:g} s of processor time"
        elif peak_memory() > self._most:
            self._exhausted = f"it takes more than {MAX_GROWTH >> 20:,} MB of memory"
        return int(self._steps < 0 or bool(self._exhausted))

    def _why(self, error: Exception) -> str:
        if self._denied:
            return self._denied
        if str(error) == "interrupted":
            return f"it takes more than {MAX_STEPS:,} steps"
        return str(error)

    def _authorize(self, action: int, *about: str | None) -> int:
        if self._mode is Mode.OWN:
            return sqlite3.SQLITE_OK
        self._denied = self._objection(action, *about) or self._denied
        return sqlite3.SQLITE_DENY if self._denied else sqlite3.SQLITE_OK

    def _objection(
        self, action: int, one: str | None, two: str | None, base: str | None, by: str | None
    ) -> str:
        """Why an action is refused, or ""."""
        if action in _READS:
            return ""
        if action == sqlite3.SQLITE_FUNCTION:
            name = str(two).lower()
            return "" if name in _FUNCTIONS else f"the function {name}() is not allowed"
        if action == sqlite3.SQLITE_READ:
            # Of what WITH gives, no columns may be read: its rows are counted.
            counted = two == "" and base is None and self._is_common(str(one).lower())
            return "" if counted else self._table_objection(one)
        if self._mode is Mode.SCHEMA and action in _DEFINES:
            return ""
        if self._mode in (Mode.SCHEMA, Mode.WRITE) and action in _WRITES:
            # The triggers that note what is written; nothing else has a trigger.
            noted = action == sqlite3.SQLITE_INSERT and (one, base) == (TOUCHED, "temp")
            return "" if noted and by else self._table_objection(one)
        what = _NAMES.get(action, "this")
        where = {Mode.SCHEMA: "in a schema", Mode.READ: "in a query", Mode.WRITE: "in a statement"}
        return f"{what} is not allowed {where[self._mode]}"

    def _is_common(self, name: str) -> bool:
        known = name in self.common or name in common_tables(self._statement)
        return known and not name.startswith(_HIDDEN)

    def _table_objection(self, table: str | None) -> str:
        name = str(table).lower()
        if name in self.tables or name in _TABLE_FUNCTIONS:
            return ""
        # Creating a table writes into SQLite's own, which no statement can do directly.
        hidden = name.startswith(_HIDDEN) and name not in _SCHEMA_TABLES
        if self._mode is Mode.SCHEMA and not hidden:
            return ""
        return f"the table {table} is not the domain's"
