"""A world of tables is saved whole, and what is read again is checked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_worlds import Call, calls, do, library, write

from muarl.world import diff, equal, plain
from muarl.world.sql import Refused, SqlWorld

DEVICE: dict[str, Any] = {"screen": {"on": True}, "apps": ["mail"], "a.b": None}


def test_a_world_on_disk_is_an_sqlite_file(tmp_path: Path) -> None:
    base = library()
    world = base.fork()
    write(world, "DELETE FROM books WHERE id = 'B2'", "INSERT INTO log VALUES ('é')")
    world.save(tmp_path / "world.db")
    again = base.restored(tmp_path / "world.db")
    assert equal(again, world)
    assert len(diff(base, again)) == 2
    with sqlite3.connect(tmp_path / "world.db") as file:
        assert file.execute("SELECT what FROM log").fetchall() == [("é",)]
    file.close()
    with pytest.raises(FileExistsError):
        world.save(tmp_path / "world.db")
    (tmp_path / "no.db").write_text("no database at all, but a text of some length")
    with pytest.raises(Refused, match="holds no world"):
        base.restored(tmp_path / "no.db")


def test_what_is_beside_the_tables_is_saved_too(tmp_path: Path) -> None:
    """The user's device was dropped."""
    base = SqlWorld(library().database, {"device": DEVICE})
    world = base.fork({"device": {"screen": {"on": False}}})
    world["from_a_server"] = {"n": 1}
    world.save(tmp_path / "world.db")
    again = base.restored(tmp_path / "world.db")
    assert equal(again, world)
    assert [str(change) for change in diff(base, again)] == [
        "device.screen.on: True -> False",
        "from_a_server: added {'n': 1}",
    ]
    assert plain(again.fork()["device"]) == {**DEVICE, "screen": {"on": False}}
    del world["device"]
    world.save(tmp_path / "without.db")
    assert "device" not in base.restored(tmp_path / "without.db")


def test_a_table_and_what_is_beside_it_are_not_of_one_name() -> None:
    with pytest.raises(ValueError, match="'books' is a table"):
        SqlWorld(library().database, {"books": {}})


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("UPDATE log SET what = x'00'", "row '1' of 'log' is none of a world"),
        ("INSERT INTO odd VALUES (9e999)", "row '1' of 'odd' is none of a world"),
        ("INSERT INTO odd VALUES (-1)", "row '1' of 'odd' is none of its table: CHECK constraint"),
        ("UPDATE parts SET number = 1.5", "the key 'number' of 'parts' is INTEGER"),
        ("DROP TABLE log", "holds no world of these tables: there is no 'log'"),
        ("DROP TABLE log; CREATE VIEW log AS SELECT 1 AS what", "there is no 'log'"),
        ("ALTER TABLE log RENAME COLUMN what TO it", "table 'log' has other columns there"),
        ("DROP TABLE _muarl_beside", "there is no '_muarl_beside'"),
        ("INSERT INTO _muarl_beside VALUES ('log', '{}')", "'log' is a table"),
        ("INSERT INTO _muarl_beside VALUES ('x', '{')", "'x' is no JSON"),
        ("INSERT INTO _muarl_beside VALUES ('x', 'NaN')", "JSON has no number for"),
        ("INSERT INTO _muarl_beside VALUES (1, '{}')", ""),
        ("INSERT INTO _muarl_beside VALUES (x'31', '{}')", "no key of a world"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, sql: str, why: str) -> None:
    base = library("CREATE TABLE odd (n REAL CHECK (n > 0))", "INSERT INTO log VALUES ('one')")
    base.save(tmp_path / "world.db")
    with closing(sqlite3.connect(tmp_path / "world.db")) as file:
        file.executescript(f"PRAGMA ignore_check_constraints = ON; {sql}")
    if why:
        with pytest.raises(Refused, match=why):
            base.restored(tmp_path / "world.db")
    else:
        base.restored(tmp_path / "world.db")
    assert base.query("SELECT what FROM log") == [{"what": "one"}]


def test_a_world_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="unable to open"):
        library().save(tmp_path / "nowhere" / "world.db")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(calls(1), max_size=6),
    st.dictionaries(st.text(max_size=3), st.integers() | st.booleans() | st.text(max_size=3)),
)
def test_whatever_was_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, made: list[Call], device: dict[str, Any]
) -> None:
    base = SqlWorld(library().database, {"device": DEVICE})
    world = base.fork()
    for _, *call in made:
        do(world, *call)
    world["device"].update({key: value for key, value in device.items() if not _too_big(value)})
    path = tmp_path_factory.mktemp("saved") / "world.db"
    world.save(path)
    again = base.restored(path)
    assert diff(world, again) == []
    assert plain(again) == plain(world)
    do(again, ["INSERT INTO log VALUES ('later')"], "", "", 0)
    assert again.query("SELECT count(*) AS n FROM log") != world.query(
        "SELECT count(*) AS n FROM log"
    )


def _too_big(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 2**63
