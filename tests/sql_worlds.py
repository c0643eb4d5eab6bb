"""A small world of tables, and random calls on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from muarl.world.sql import Database, Refused, SqlWorld

SCHEMA = [
    "CREATE TABLE books (id TEXT PRIMARY KEY, title TEXT NOT NULL, state TEXT DEFAULT 'in')",
    "CREATE TABLE loans (id INTEGER PRIMARY KEY, book TEXT REFERENCES books ON DELETE CASCADE)",
    "CREATE TABLE parts (book TEXT, number INTEGER, note TEXT, PRIMARY KEY (book, number))",
    "CREATE TABLE log (what TEXT)",
    "CREATE VIEW lent AS SELECT book FROM loans",
]


def library(*more: str) -> SqlWorld:
    database = Database()
    for statement in (*SCHEMA, *more):
        database.define(statement)
    for number in range(4):
        database.insert("books", f"B{number}", {"title": f"title {number}"})
    database.insert("loans", "1", {"book": "B0"})
    database.insert("parts", '["B1", 1]', {"note": "torn"})
    database.ready(["loans"])
    return SqlWorld(database)


def write(world: SqlWorld, *statements: str, **parameters: Any) -> None:
    world.database.write(world, statements, parameters)


WRITES = [
    "INSERT OR REPLACE INTO books (id, title) VALUES (:key, :text)",
    "UPDATE books SET title = :text, state = NULL WHERE id = :key",
    "UPDATE books SET id = 'B' || :number WHERE id = :key",
    "DELETE FROM books WHERE id = :key",
    "INSERT INTO loans (book) VALUES (:key)",
    "DELETE FROM loans WHERE id = :number",
    "UPDATE loans SET book = (SELECT max(id) FROM books) WHERE id <= :number",
    "INSERT INTO log SELECT title FROM books ORDER BY id",
    "DELETE FROM log WHERE what = :text",
    "INSERT OR IGNORE INTO parts VALUES (:key, :number, :text)",
    "UPDATE parts SET number = number + 1 WHERE book < :key",
    "INSERT INTO books SELECT 'B' || count(*), 'made', NULL FROM books",
]
Call = tuple[int, list[str], str, str, int]
"""Of which world; statements; what `:key`, `:text` and `:number` stand for in them."""


def calls(worlds: int) -> st.SearchStrategy[Call]:
    return st.tuples(
        st.integers(0, worlds - 1),
        st.lists(st.sampled_from(WRITES), min_size=1, max_size=3),
        st.sampled_from(["B0", "B1", "B2", "B5"]),
        st.sampled_from(["t", "u"]),
        st.integers(0, 3),
    )


def do(
    world: SqlWorld, statements: Sequence[str], key: str, text: str, number: int, **more: Any
) -> str:
    """Make a call; why it was refused, or ""."""
    try:
        write(world, *statements, key=key, text=text, number=number, **more)
    except Refused as refused:
        return str(refused)
    return ""
