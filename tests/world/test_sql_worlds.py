"""Law L3 for worlds of tables: one database, and every dialogue's world its own."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_worlds import SCHEMA, Call, calls, do, library, write

from muarl.world import apply_changes, canonical_diff, diff, equal, lookup, plain
from muarl.world.sql import Database, Refused, RowError


def test_a_statement_changes_the_world_it_runs_in_and_no_other() -> None:
    base = library()
    mine, yours = base.fork(), base.fork()
    write(mine, "UPDATE books SET state = 'out' WHERE id = :id", id="B1")
    assert mine["books"]["B1"]["state"] == "out"
    assert [world.query("SELECT state FROM books WHERE id = 'B1'") for world in (yours, mine)] == [
        [{"state": "in"}],
        [{"state": "out"}],
    ]
    assert equal(base, yours)
    assert [str(change) for change in diff(base, mine)] == ["books.B1.state: 'in' -> 'out'"]


def test_whatever_writes_a_row_is_noted() -> None:
    world = library()
    write(
        world,
        "INSERT OR REPLACE INTO books VALUES ('B1', 'new', 'in')",
        "INSERT INTO books VALUES ('B2', 'x', 'y') ON CONFLICT (id) DO UPDATE SET state = 'gone'",
        "UPDATE books SET id = 'B9' WHERE id = 'B3'",
        "DELETE FROM books WHERE id = 'B0'",
        "INSERT INTO log VALUES ('twice'), ('twice')",
        "UPDATE parts SET number = 2",
    )
    assert [str(change) for change in diff(library(), world)] == [
        "books.B0: removed {'id': 'B0', 'title': 'title 0', 'state': 'in'}",
        "books.B1.title: 'title 1' -> 'new'",
        "books.B2.state: 'in' -> 'gone'",
        "books.B3: removed {'id': 'B3', 'title': 'title 3', 'state': 'in'}",
        "books.B9: added {'id': 'B9', 'title': 'title 3', 'state': 'in'}",
        "loans.1: removed {'id': 1, 'book': 'B0'}",
        "log.1: added {'what': 'twice'}",
        "log.2: added {'what': 'twice'}",
        "parts.[\"B1\", 1]: removed {'book': 'B1', 'number': 1, 'note': 'torn'}",
        "parts.[\"B1\", 2]: added {'book': 'B1', 'number': 2, 'note': 'torn'}",
    ]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("INSERT INTO loans (book) VALUES ('B7')", "FOREIGN KEY constraint failed"),
        ("INSERT INTO books (id) VALUES ('B8')", "NOT NULL constraint failed: books.title"),
        ("INSERT INTO books VALUES ('B1', 'again', 'in')", "UNIQUE constraint failed: books.id"),
        ("INSERT INTO log VALUES (x'00')", "row '2' of 'log' is none of a world: what is of type"),
        ("INSERT INTO log VALUES (:big)", "an integer is beyond 64 bits"),
    ],
)
def test_of_statements_that_fail_together_none_counts(statement: str, why: str) -> None:
    base = library()
    world = base.fork()
    first = "INSERT INTO log VALUES ('first')"
    with pytest.raises(Refused, match=why.replace("(", r"\(")):
        write(world, first, statement, big=2**63)
    assert equal(base, world)
    assert world.query("SELECT * FROM log") == []


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA user_version",
        "ATTACH 'other.db' AS other",
        "SELECT * FROM sqlite_master",
        "WITH _muarl_x AS (SELECT * FROM sqlite_schema) SELECT * FROM _muarl_x",
        "SELECT * FROM pragma_table_info('books')",
        "SELECT * FROM _muarl_touched",
        "WITH sqlite_schema AS (SELECT 1) SELECT count(*) FROM main.sqlite_schema",
        "WITH dbstat AS (SELECT 1) SELECT count(*) FROM main.dbstat",
        "SELECT * FROM dbstat",
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT random()",
        "SELECT date('now')",
        "SELECT datetime('2026-01-01', 'localtime')",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT last_insert_rowid()",
        "BEGIN",
        "COMMIT",
        "VACUUM",
        "CREATE TABLE other (a)",
        "DROP TABLE books",
        "DELETE FROM books",
        "SELECT 1; SELECT 2",
        "SELECT zeroblob(1000000000)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT no_such_column FROM books",
    ],
)
def test_what_is_not_declared_does_not_run(sql: str) -> None:
    base = library()
    with pytest.raises(Refused):
        base.query(sql)
    with pytest.raises(Refused):
        write(base, sql if sql != "DELETE FROM books" else "DELETE FROM sqlite_master")
    assert equal(base, library())


def test_queries_may_use_views_joins_json_and_dates() -> None:
    world = library()
    assert world.query("SELECT count(*) AS n FROM lent") == [{"n": 1}]
    assert world.query("SELECT value FROM json_each(:list)", {"list": "[1, 2]"})[1] == {"value": 2}
    days = "SELECT date(:day, '+14 days') AS due, strftime('%d', :day) AS day"
    assert world.query(days, {"day": "2026-02-20"}) == [{"due": "2026-03-06", "day": "20"}]


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ("RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3)", "n"),
        ("RECURSIVE n(i) AS NOT MATERIALIZED (SELECT 1 UNION SELECT 1 + i FROM n LIMIT 3)", "N"),
        ('a AS MATERIALIZED (SELECT 1), "b" AS (SELECT 1 UNION SELECT 2 UNION SELECT 3)', "a, b"),
        ("a AS (SELECT 1)", "a, three"),
    ],
)
def test_a_query_may_count_what_with_gives_it(given: str, counted: str) -> None:
    """`the table n is not the domain's`."""
    counting = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
    world = library(f"CREATE VIEW three AS {counting} SELECT 1 FROM n")
    query = f"WITH {given} SELECT count(*) AS n FROM {counted}"
    assert world.database.problem(query, [], writes=False) is None
    assert world.query(query) == [{"n": 3}]


def test_rows_come_in_the_order_of_keys_whoever_came_first() -> None:
    base = library()
    one, other = base.fork(), base.fork()
    for world, order in ((one, ("X1", "X2")), (other, ("X2", "X1"))):
        for key in order:
            write(world, "INSERT INTO books (id, title) VALUES (:id, 't')", id=key)
            write(world, "INSERT INTO loans (book) VALUES (:id)", id=key)
    asked = [world.query("SELECT id FROM books") for world in (one, other, one)]
    assert asked[0] == asked[1] == asked[2]
    assert diff(one, other) != []
    assert canonical_diff(one, other, one.unordered) == []


def test_rows_of_a_task_are_checked_by_the_tables() -> None:
    base = library()
    patch = {"loans": {"9": {"book": "B7"}}, "books": {"B7": {"title": "t"}, "B1": {"title": "u"}}}
    fork = base.fork({**patch, "parts": {'["B1", 1]': None}})
    assert plain(fork["books"]["B7"]) == {"id": "B7", "title": "t", "state": "in"}
    assert fork.query("SELECT b.title FROM loans JOIN books b ON b.id = book WHERE loans.id = 9")
    assert lookup(fork, "books.B1.title") == "u"
    assert plain(fork["parts"]) == {}


@pytest.mark.parametrize(
    ("patch", "loc", "why"),
    [
        ({"book": {}}, ("book",), "there is no table 'book'; did you mean 'books'"),
        ({"books": {"B1": {"titel": "x"}}}, ("books", "B1", "titel"), "no column 'titel'; did you"),
        ({"books": {"B1": {"title": None}}}, ("books", "B1"), "NOT NULL constraint failed"),
        ({"books": {"B1": {"title": []}}}, ("books", "B1", "title"), "a column holds text"),
        ({"books": {"B1": 3}}, ("books", "B1"), "give a row as a mapping"),
        ({"books": {"\ud800": {}}}, ("books", "\ud800"), "surrogate"),
        ({"books": {"\ud800": 3}}, ("books", "\ud800"), "surrogate"),
        ({"books": {"\ud800": None}}, ("books", "\ud800"), "surrogate"),
        ({"parts": {'["\ud800", 1]': {}}}, ("parts", '["\ud800", 1]'), "surrogate"),
        ({"parts": {'["\\ud800", 1]': {}}}, ("parts", '["\\ud800", 1]'), "surrogate"),
        ({"books": []}, ("books",), "give rows as a mapping"),
        ({"parts": {"B1": {}}}, ("parts", "B1"), "write the values of book, number as a JSON list"),
        ({"loans": {"x": {"book": "B1"}}}, ("loans", "x"), "PRIMARY KEY 'id' is a whole number"),
        ({"loans": {"4": {"book": "B8"}}}, (), "FOREIGN KEY constraint failed"),
    ],
)
def test_rows_that_the_tables_do_not_take_name_their_place(
    patch: dict[str, Any], loc: tuple[str, ...], why: str
) -> None:
    base = library()
    with pytest.raises(RowError, match=why) as wrong:
        base.fork(patch)
    assert wrong.value.loc == loc
    assert equal(base, library())


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)", "AUTOINCREMENT is not allowed"),
        ("CREATE TABLE t (id REAL PRIMARY KEY)", "let it be TEXT or INTEGER"),
        ("CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END", "CREATE TRIGGER is not"),
        ("CREATE TEMP TABLE t (a)", "CREATE TEMP TABLE is not allowed"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", "CREATE VTABLE is not allowed"),
        ("PRAGMA journal_mode = OFF", "a schema creates tables and inserts rows"),
        ("INSERT INTO log SELECT random()", "the function random"),
        ("CREATE TABLE _muarl_beside (a)", "muarl's own begin with _muarl"),
    ],
)
def test_a_schema_holds_tables_and_rows_only(statement: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        library(statement)


@pytest.mark.parametrize("name", ["books", "other"])
def test_a_table_whose_keys_mean_something_is_not_unordered(name: str) -> None:
    database = Database()
    for statement in SCHEMA:
        database.define(statement)
    database.define("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    database.define("CREATE TABLE more (id INTEGER PRIMARY KEY, other INTEGER REFERENCES other)")
    with pytest.raises(RowError, match="cannot be unordered"):
        database.ready([name])


def test_keys_and_values_may_be_any_text() -> None:
    base = library()
    world = base.fork()
    odd = ["", "a\0b", "it's", '"', "[1]", "é", "1", "01", " 1", "B1.state", "\U0001f600", "null"]
    for text in odd:
        write(world, "INSERT INTO books VALUES (:t, :t, :t)", t=text)
        write(world, "INSERT INTO parts VALUES (:t, :n, :t)", t=text, n=2**60)
    assert {key: row["title"] for key, row in world["books"].items() if key in odd} == dict(
        zip(odd, odd, strict=True)
    )
    other = base.fork()
    other.query("SELECT 1")  # the database goes to another world, and comes back
    apply_changes(other, diff(base, world))
    for table in ("books", "parts"):
        query = f"SELECT * FROM {table}"
        base.query(query)
        assert other.query(query) == world.query(query)
    write(world, "DELETE FROM books WHERE id <> 'B0'", "DELETE FROM parts")
    assert sorted(world["books"]) == ["B0"]
    assert plain(world["parts"]) == {}


def test_tables_may_be_strict_computed_and_oddly_named() -> None:
    base = library(
        'CREATE TABLE "odd ""name" (k TEXT PRIMARY KEY, n INTEGER CHECK (n > 0)) STRICT',
        "CREATE TABLE sums (a INTEGER, b INTEGER, s INTEGER AS (a + b), PRIMARY KEY (b, a))",
        "CREATE TABLE rowid (rowid TEXT, note TEXT)",
        "CREATE TABLE sqliteish (a TEXT)",
    )
    world = base.fork()
    write(
        world,
        'INSERT INTO "odd ""name" VALUES (\'x\', 1)',
        "INSERT INTO sums (a, b) VALUES (1, 2)",
        "INSERT INTO rowid VALUES ('mine', 'n')",
        "INSERT INTO sqliteish VALUES ('a')",
    )
    assert [str(change) for change in diff(base, world)] == [
        "odd \"name.x: added {'k': 'x', 'n': 1}",
        "rowid.1: added {'rowid': 'mine', 'note': 'n'}",
        "sqliteish.1: added {'a': 'a'}",
        "sums.[2, 1]: added {'a': 1, 'b': 2}",
    ]
    assert base.query("SELECT s FROM sums") == []
    assert world.query("SELECT s FROM sums") == [{"s": 3}]


@settings(max_examples=40, deadline=None)
@given(st.lists(calls(3), max_size=12))
def test_worlds_behave_as_if_each_had_a_database_of_its_own(made: list[Call]) -> None:
    base = library()
    worlds = [base.fork() for _ in range(3)]
    alone = [library() for _ in range(3)]
    for which, *call in made:
        assert do(worlds[which], *call) == do(alone[which], *call)
    for world, own in zip(worlds, alone, strict=True):
        assert diff(world, own) == []
        for table in world.database.tables:
            query = f"SELECT * FROM {table}"
            held = [*plain(world[table]).values()]
            assert world.query(query) == own.query(query)
            assert sorted(map(str, world.query(query))) == sorted(map(str, held))
        again = base.fork()
        apply_changes(again, diff(base, world))
        assert diff(again, world) == []
        assert again.query("SELECT * FROM loans") == world.query("SELECT * FROM loans")
    assert equal(base, library())


@settings(max_examples=40, deadline=None)
@given(st.lists(calls(2), max_size=10), st.lists(calls(2), max_size=4))
def test_a_fork_never_sees_what_is_written_later_L3(made: list[Call], later: list[Call]) -> None:
    """Neither in the world that it is a fork of, nor in a fork of its own."""
    base = library()
    world = base.fork()
    for _, *call in made:
        do(world, *call)
    fork = world.fork()
    was = [plain(base), plain(world), plain(fork)]
    for which, *call in later:
        do((world, fork)[which], *call)
        assert plain(base) == was[0]
        for other in {0, 1} - {which}:
            assert plain((world, fork)[other]) == was[1 + other]
            assert (world, fork)[other].query("SELECT * FROM books") == [
                was[1 + other]["books"][key] for key in sorted(was[1 + other]["books"])
            ]
        was = [plain(base), plain(world), plain(fork)]


@settings(max_examples=40, deadline=None)
@given(st.lists(calls(1), max_size=8), st.randoms(use_true_random=False))
def test_equality_is_canonical_whatever_led_to_a_world_L3(made: list[Call], rng: Any) -> None:
    """Rows in another order, numbers given out in another order, another way to the same rows."""
    base = library()
    world = base.fork()
    for _, *call in made:
        do(world, *call)
    assert equal(world, world.fork())
    rows = plain(world)
    other = base.fork({name: dict.fromkeys(base[name]) for name in ("log", "loans", "parts")})
    for key in base["books"]:
        if key not in rows["books"]:
            del other["books"][key]
    for name in ("books", "parts"):
        keys = list(rows[name])
        rng.shuffle(keys)
        for key in keys:
            other[name][key] = dict(reversed(rows[name][key].items()))
    assert diff(world["books"], other["books"]) == []
    assert diff(world["parts"], other["parts"]) == []
    for name, columns in (("log", "what"), ("loans", "book")):
        for row in sorted(rows[name].values(), key=lambda row: rng.random()):
            insert = f"INSERT INTO {name} ({columns}) VALUES (:value)"
            assert do(other, [insert], "", "", 0, value=row[columns]) == ""
    assert canonical_diff(world, other, base.unordered) == []
    assert canonical_diff(other, world, base.unordered) == []
    write(other, "INSERT INTO log VALUES ('one more')")
    assert len(canonical_diff(world, other, base.unordered)) == 1


def test_a_database_made_in_a_thread_is_closed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are composed of goals in a thread of their own, and what that leaves is collected here."""
    unheard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unheard.append)
    with ThreadPoolExecutor(max_workers=1) as thread:
        database = thread.submit(Database).result()
    del database
    gc.collect()
    assert unheard == []
