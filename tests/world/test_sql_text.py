"""SQL is cut into statements and parameters where SQLite would cut it."""

from __future__ import annotations

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.world.sql.text import first_word, parameters, place_in, statements, trailing_words

pieces = st.lists(
    st.sampled_from(
        ["SELECT ", "1", " ; ", "';'", '";"', "-- ;\n", "/* ; */", "[;]", "`;`", ":a", "x", "''"]
    ),
    max_size=8,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(pieces)
def test_statements_end_where_sqlite_ends_them(sql: str) -> None:
    found = statements(sql)
    assert all(sql[one.at :].startswith(one.text) for one in found)
    assert all(sqlite3.complete_statement(f"{one.text};") for one in found)
    cut = statements(";".join(one.text for one in found))
    assert [one.text for one in cut] == [one.text for one in found]


def test_parameters_in_texts_and_comments_are_none() -> None:
    sql = "SELECT ':a', \":b\", [:c] -- :d\n, /* :e */ :f, @g, ?1, :f"
    assert parameters(sql) == {":f": sql.index(":f"), "@g": sql.index("@g"), "?1": sql.index("?1")}


def test_words_and_places() -> None:
    assert first_word("-- c\n  with x as (select 1) select 2") == "WITH"
    assert first_word("(1)") == ""
    assert trailing_words("CREATE TABLE t (a TEXT) strict, without rowid") == {
        "STRICT",
        "WITHOUT",
        "ROWID",
    }
    assert place_in("ab\ncd", 4) == (2, 2)
