"""Law L5 in SQL: what a call does and answers follows from its world and its arguments."""

from __future__ import annotations

import pytest

from muarl.world import equal, plain
from muarl.world.sql import Database, Refused, SqlWorld

LAST = 2**63 - 1


def world(*statements: str) -> SqlWorld:
    database = Database()
    for statement in statements:
        database.define(statement)
    database.ready()
    return SqlWorld(database)


@pytest.mark.parametrize("columns", ["id INTEGER PRIMARY KEY, what TEXT", "what TEXT"])
def test_numbers_that_are_used_up_are_a_fault_and_not_drawn(columns: str) -> None:
    """SQLite draws a row's number at random once a table holds the greatest."""
    key = "id" if columns.startswith("id") else "rowid"
    base = world(
        f"CREATE TABLE log ({columns})",
        f"INSERT INTO log ({key}, what) VALUES ({LAST - 1}, 'last but one')",
    )
    for statement in (
        "INSERT INTO log (what) VALUES ('one more')",
        "INSERT OR IGNORE INTO log (what) VALUES ('one more'), ('two more')",
        f"INSERT INTO log ({key}, what) VALUES ({LAST}, 'given')",
        f"UPDATE log SET {key} = {LAST}",
    ):
        fork = base.fork()
        with pytest.raises(Refused, match=f"row {LAST} of 'log'.* draws the next"):
            fork.database.write(fork, [statement], {})
        assert equal(fork, base)
    with pytest.raises(Refused, match=f"row {LAST} of 'log'"):
        base.fork({"log": {str(LAST): {"what": "of a task"}}})
    with pytest.raises(Refused, match=f"row {LAST} of 'log'"):
        world(f"CREATE TABLE log ({columns})", f"INSERT INTO log ({key}) VALUES ({LAST})")


def test_the_number_of_a_new_row_follows_from_the_rows_that_are_there() -> None:
    """Whatever another dialogue did, and whatever was deleted before."""
    base = world("CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)")
    other = base.fork()
    for _ in range(5):
        base.database.write(other, ["INSERT INTO log (what) VALUES ('other')"], {})
    mine = base.fork()
    base.database.write(mine, ["INSERT INTO log (what) VALUES ('a'), ('b')"], {})
    base.database.write(mine, ["DELETE FROM log WHERE id = 2"], {})
    base.database.write(mine, ["INSERT INTO log (what) VALUES ('c')"], {})
    assert {key: row["what"] for key, row in plain(mine["log"]).items()} == {"1": "a", "2": "c"}


@pytest.mark.parametrize(
    "call",
    [
        *("random()", "randomblob(4)", "last_insert_rowid()", "changes()", "total_changes()"),
        *("sqlite_version()", "sqlite_source_id()", "CURRENT_TIMESTAMP", "CURRENT_DATE"),
        *("date()", "date('now')", "date('NOW ')", "time('now', '+1 day')", "strftime('%Y')"),
        *("date(x'6e6f77')", "date('now' || char(0) || 'x')", "date('2026-01-01', 'localtime')"),
        *("datetime('subsec')", "unixepoch('subsecond')", "strftime('%s', 'subsec')"),
    ],
)
def test_nothing_tells_the_time_or_draws(call: str) -> None:
    base = world("CREATE TABLE log (what TEXT)")
    with pytest.raises(Refused):
        base.query(f"SELECT {call} AS it")


@pytest.mark.parametrize("clock", ["date('now')", "date()", "strftime('%s')", "random()"])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (id TEXT PRIMARY KEY, at TEXT CHECK (at < {}))",
        "CREATE TABLE t (id TEXT PRIMARY KEY, at TEXT, CHECK (at < {}))",
        "CREATE TABLE t (id TEXT PRIMARY KEY, at TEXT AS ({}))",
        "CREATE TABLE t (id TEXT PRIMARY KEY, at TEXT AS ({}) STORED)",
        "CREATE TABLE t (id TEXT PRIMARY KEY, at TEXT DEFAULT ({}))",
        "CREATE INDEX i ON log (what || {})",
        "CREATE INDEX i ON log (what) WHERE what < {}",
        "CREATE VIEW v AS SELECT {} AS it",
        "CREATE VIEW v AS SELECT what FROM log WHERE what < {}",
    ],
)
def test_a_schema_holds_no_clock_and_no_dice(statement: str, clock: str) -> None:
    """It was taken, and then every insert or every query failed."""
    database = Database()
    database.define("CREATE TABLE log (what TEXT)")
    with pytest.raises(Refused):
        database.define(statement.format(clock))
    assert list(database.tables) == ["log"]
    database.define(statement.format("'2026-01-01'"))  # nothing of the refused one is left


@pytest.mark.parametrize(
    "default",
    ["CURRENT_TIMESTAMP", "CURRENT_DATE", "(random())", "(hex(randomblob(4)))"],
)
def test_a_default_that_tells_the_time_or_draws_is_refused(default: str) -> None:
    database = Database()
    with pytest.raises(Refused, match=r"the default of 'at' is .* no clock and no dice"):
        database.define(f"CREATE TABLE log (what TEXT PRIMARY KEY, at TEXT DEFAULT {default})")
    assert database.tables == {}


@pytest.mark.parametrize("default", ["'x'", "5", "-3", "(1 + 2)", "NULL", "TRUE", "(lower('A'))"])
def test_other_defaults_are_taken(default: str) -> None:
    database = Database()
    database.define(f"CREATE TABLE log (what TEXT PRIMARY KEY, at TEXT DEFAULT {default})")
    assert list(database.tables) == ["log"]


def test_dates_that_are_given_are_no_clock() -> None:
    database = Database()
    database.define("CREATE TABLE time (date TEXT, due TEXT AS (date(date, '+1 day')))")
    database.define("CREATE VIEW months AS SELECT strftime('%m', date) AS month FROM time")
    database.define("INSERT INTO time (date) VALUES ('2026-03-01')")
    assert database.problem("SELECT date(:day, 'now-') AS it", ["day"], writes=False) is None


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        ("SELECT date(:day), 'now', time('12:00') || time(\n'now')", 43),
        ("SELECT strftime('%s') AS now", 7),
        ("SELECT date('2026-01-01', 'localtime') AS here", 7),
    ],
)
def test_a_clock_in_a_statement_is_found_when_it_is_loaded(sql: str, at: int) -> None:
    base = world("CREATE TABLE log (what TEXT)")
    problem = base.database.problem(sql, ["day"], writes=False)
    assert problem is not None
    assert "may not ask for the time" in str(problem)
    assert problem.at == at


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a, 2 AS a",
        "SELECT 1 AS a, 2 AS A",
        "SELECT * FROM (SELECT 1 AS a, 2 AS a)",
        "SELECT * FROM (SELECT 1 a, 2 a, 3 a, 4 a, 5 a, 6 a)",
        "SELECT log.*, b.what FROM log, log b",
    ],
)
def test_two_columns_of_one_name_are_found_when_a_query_is_loaded(query: str) -> None:
    """Of five and more SQLite even draws the names that it gives them."""
    base = world("CREATE TABLE log (what TEXT)")
    problem = base.database.problem(query, [], writes=False)
    assert problem is not None
    assert "two columns are named" in str(problem)
    with pytest.raises(Refused, match="two columns are named"):
        base.query(query)
    with pytest.raises(Refused, match="two columns are named"):
        base.database.define(f"CREATE VIEW v AS {query}")


def test_a_table_made_of_a_query_has_no_two_columns_of_one_name() -> None:
    database = Database()
    with pytest.raises(Refused, match="two columns are named 'a'"):
        database.define("CREATE TABLE t AS SELECT 1 AS a, 2 AS a")
    assert database.tables == {}


def test_a_view_is_compiled_when_it_is_made() -> None:
    """SQLite compiles it only when it is asked, so that each query would have failed."""
    database = Database()
    database.define("CREATE TABLE log (what TEXT)")
    for view in ("SELECT colour FROM log", "SELECT * FROM sqlite_schema", "SELECT * FROM later"):
        with pytest.raises(Refused, match=r"no such|is not the domain's"):
            database.define(f"CREATE VIEW v AS {view}")
    database.define("CREATE VIEW v AS SELECT what FROM log")
    database.ready()
    assert SqlWorld(database).query("SELECT * FROM v") == []


def test_a_column_may_be_named_as_sqlite_would() -> None:
    base = world("CREATE TABLE log (what TEXT)")
    query = 'SELECT 1 AS "a", 2 AS "a:1"'
    assert base.database.problem(query, [], writes=False) is None
    assert base.query(query) == [{"a": 1, "a:1": 2}]
