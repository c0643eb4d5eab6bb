"""A row has one key, and a key one spelling: else the document and the table would part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from muarl.world import plain
from muarl.world.sql import Database, Refused, RowError, SqlWorld

SLOTS = "CREATE TABLE slots (id INT PRIMARY KEY, who TEXT)"
SEATS = "CREATE TABLE seats (hall TEXT, number INTEGER, who TEXT, PRIMARY KEY (hall, number))"
NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, who TEXT)"
NAMES = "CREATE TABLE names (id TEXT PRIMARY KEY, who TEXT)"
ALL = (SLOTS, SEATS, NOTES, NAMES)


def database(*statements: str) -> Database:
    made = Database()
    for statement in statements:
        made.define(statement)
    return made


def world(*statements: str) -> SqlWorld:
    made = database(*statements)
    made.ready()
    return SqlWorld(made)


@pytest.mark.parametrize(
    "columns",
    [
        "time TEXT COLLATE NOCASE PRIMARY KEY",
        "time TEXT COLLATE RTRIM, who TEXT, PRIMARY KEY (who, time)",
        "time TEXT, who TEXT, PRIMARY KEY (time COLLATE NOCASE)",
        "time TEXT COLLATE NOCASE, who TEXT, PRIMARY KEY (time COLLATE BINARY)",
        "time TEXT COLLATE BINARY, who TEXT, PRIMARY KEY (time COLLATE NOCASE)",
        "who TEXT, time TEXT COLLATE RTRIM, PRIMARY KEY (who, time COLLATE BINARY)",
    ],
)
def test_a_key_that_may_be_spelled_in_two_ways_is_refused(columns: str) -> None:
    """`mo-9` renamed to `MO-9` left both in the document, and one row in SQL."""
    made = Database()
    with pytest.raises(Refused, match="a key has one spelling"):
        made.define(f"CREATE TABLE slots ({columns})")
    assert made.tables == {}
    made.define("CREATE TABLE slots (time TEXT PRIMARY KEY, who TEXT COLLATE NOCASE)")
    assert list(made.tables) == ["slots"]


NO_KEY = [
    ("INSERT INTO slots VALUES (1.5, 'x')", "the key 'id' of 'slots' is INTEGER"),
    ("INSERT INTO slots VALUES ('x', 'x')", "the key 'id' of 'slots' is INTEGER"),
    ("INSERT INTO slots VALUES (9e999, 'x')", "the key 'id' of 'slots' is INTEGER"),
    ("INSERT INTO slots VALUES (x'31', 'x')", "the key 'id' of 'slots' is INTEGER"),
    ("INSERT OR IGNORE INTO slots VALUES (1.5, 'x')", "the key 'id' of 'slots' is INTEGER"),
    ("INSERT INTO seats VALUES ('a', 1.5, 'x')", "the key 'number' of 'seats' is INTEGER"),
    ("INSERT INTO seats VALUES (x'61', 1, 'x')", "the key 'hall' of 'seats' is TEXT"),
    ("INSERT INTO names VALUES (x'61', 'x')", "the key 'id' of 'names' is TEXT"),
    ("INSERT INTO notes VALUES (1.5, 'x')", "datatype mismatch"),
]


@pytest.mark.parametrize(("statement", "why"), NO_KEY)
def test_a_key_is_of_the_kind_that_its_column_says(statement: str, why: str) -> None:
    """1.5 and '1.5' were two rows of one name; a BLOB is none of a document."""
    with pytest.raises(Refused, match=why):
        database(*ALL, statement)
    base = world(*ALL)
    fork = base.fork()
    with pytest.raises(Refused, match=why) as refused:
        fork.database.write(fork, ["INSERT INTO slots VALUES (1, 'x')", statement], {})
    assert not isinstance(refused.value, RowError)  # an argument's fault: the policy reads it
    assert fork == base


def test_a_key_does_not_become_of_another_kind() -> None:
    base = world(*ALL, "INSERT INTO slots VALUES (1, 'x')", "INSERT INTO names VALUES ('a', 'x')")
    for statement in ("UPDATE slots SET id = 1.5", "UPDATE names SET id = x'61'"):
        with pytest.raises(Refused, match="the key 'id' of"):
            base.database.write(base, [statement], {})


def test_a_csv_file_gives_keys_as_text_and_the_column_makes_numbers_of_them() -> None:
    made = database(*ALL)
    made.insert_columns("slots", ["id", "who"], iter([["7", "x"], ["08", "y"]]))
    made.ready()
    assert sorted(SqlWorld(made)["slots"]) == ["7", "8"]
    with pytest.raises(RowError, match="the key 'id' of 'slots' is INTEGER") as wrong:
        database(*ALL).insert_columns("slots", ["id"], iter([["7"], ["7.5"]]))
    assert wrong.value.loc == ("slots", "1")


ROWS: list[tuple[str, str, Any, Sequence[str], str]] = [
    ("slots", "1.5", {}, ("slots", "1.5"), "the key 'id' of 'slots' is INTEGER"),
    ("slots", "x", {}, ("slots", "x"), "the key 'id' of 'slots' is INTEGER"),
    ("slots", "01", {}, ("slots", "01"), "write the key '01' as '1'"),
    ("slots", "1e3", {}, ("slots", "1e3"), "write the key '1e3' as '1000'"),
    ("notes", "01", {}, ("notes", "01"), "write the key '01' as '1'"),
    ("notes", "-0", {}, ("notes", "-0"), "write the key '-0' as '0'"),
    ("notes", "1.5", {}, ("notes", "1.5"), "PRIMARY KEY 'id' is a whole number"),
    ("notes", "9" * 30, {}, ("notes", "9" * 30), "PRIMARY KEY 'id' is a whole number"),
    ("seats", '["a",1]', {}, ("seats", '["a",1]'), "write the key '[\"a\",1]' as '[\"a\", 1]'"),
    ("seats", '["a", 1.0]', {}, ("seats", '["a", 1.0]'), "as '[\"a\", 1]'"),
    ("seats", '["a", true]', {}, ("seats", '["a", true]'), "as '[\"a\", 1]'"),
    ("seats", '[5, 1]', {}, ("seats", '[5, 1]'), "as '[\"5\", 1]'"),
    ("seats", '["a", 1.5]', {}, ("seats", '["a", 1.5]'), "the key 'number' of 'seats' is INTEGER"),
    ("seats", '["a", 1e999]', {}, ("seats", '["a", 1e999]'), "'number' of 'seats' is INTEGER"),
    ("seats", '["a", NaN]', {}, ("seats", '["a", NaN]'), "is no key of 'seats'"),
    ("seats", '["a", null]', {}, ("seats", '["a", null]'), "NOT NULL constraint failed"),
    ("seats", "[" * 9999, {}, ("seats", "[" * 9999), "is no key of 'seats'"),
    ("seats", '["a", [1]]', {}, ("seats", '["a", [1]]'), "is no key of 'seats'"),
    ("names", "a", {"id": "b"}, ("names", "a", "id"), "'b' is another key than 'a'; leave it out"),
    ("notes", "5", {"id": 6}, ("notes", "5", "id"), "6 is another key than '5'; leave it out"),
    ("names", "a", {"who": float("nan")}, ("names", "a", "who"), "JSON has no number for"),
    ("names", "a", {"who": float("inf")}, ("names", "a", "who"), "JSON has no number for"),
    ("names", "b", None, ("names", "b"), "there is no row 'b' to take away"),
    ("slots", "02", None, ("slots", "02"), "write the key '02' as '2'"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "key", "row", "loc", "why"), ROWS)
def test_rows_of_files_and_tasks_spell_a_key_as_the_document_does(
    table: str, key: str, row: Any, loc: Sequence[str], why: str
) -> None:
    """Else two spellings in one file were one row, and a predicate's path found none."""
    seed = "INSERT INTO slots VALUES (2, 'x')"
    for insert in (database(*ALL, seed).insert, patched(world(*ALL, seed))):
        with pytest.raises(RowError) as wrong:
            insert(table, key, row)
        assert why in str(wrong.value)
        assert wrong.value.loc == tuple(loc)


def patched(base: SqlWorld) -> Any:
    return lambda table, key, row: base.fork({table: {key: row}})


def test_a_key_may_be_said_again_in_its_row() -> None:
    base = world(*ALL)
    rows = {
        "notes": {"5": {"id": 5}},
        "names": {"5": {"id": "5"}},
        "seats": {'["a", 1]': {"hall": "a", "number": 1}},
    }
    fork = base.fork(rows)
    assert plain(fork["notes"]) == {"5": {"id": 5, "who": None}}
    again = fork.fork({**rows, "names": {"5": None}})
    assert plain(again["seats"]) == {'["a", 1]': {"hall": "a", "number": 1, "who": None}}
    assert plain(again["names"]) == {}


def test_a_world_that_its_tables_do_not_take_is_the_domains_fault() -> None:
    """What Python or `sync` wrote past the tables was told to the policy as its own mistake."""
    base = world("CREATE TABLE names (id TEXT PRIMARY KEY, who TEXT CHECK (who <> 'x'))")
    base["names"]["a"] = {"id": "a", "who": "x"}
    with pytest.raises(RowError, match="CHECK constraint failed") as wrong:
        base.query("SELECT 1")
    assert wrong.value.loc == ("names", "a")
    base["names"]["a"] = {"id": "b", "who": "y"}
    with pytest.raises(RowError, match="row 'a' of 'names' holds the key 'b'"):
        base.query("SELECT 1")
    base["names"]["a"] = {"id": "a"}
    with pytest.raises(RowError, match="row 'a' of 'names' has the columns id"):
        base.query("SELECT 1")
    base["names"]["a"] = {"id": "a", "who": "y"}
    assert base.query("SELECT who FROM names") == [{"who": "y"}]
