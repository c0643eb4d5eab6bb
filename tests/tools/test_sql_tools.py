"""Tools in SQL: what the policy reads, and that a call happens whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult
from muarl.spec.sql import SqlToolSpec
from muarl.tools.memory import MemoryToolServer
from muarl.tools.sql import sql_server
from muarl.world import World, diff, equal
from muarl.world.sql import Database, SqlWorld, rules

TOOLS: dict[str, Any] = {
    "find": {
        "description": "Find.",
        "parameters": {
            "word": {"description": "Part of a title.", "required": False, "default": ""},
            "state": {"enum": ["in", "out"], "required": False},
        },
        "query": "SELECT id, price FROM books WHERE instr(title, :word) AND state = "
        "coalesce(:state, state)",
        "result": "{id} costs {price}, {state}",
        "separator": "; ",
        "max_rows": 2,
    },
    "list": {"description": "List.", "query": "SELECT id, price FROM books", "max_rows": 3},
    "lend": {
        "description": "Lend.",
        "parameters": {"book": {}, "days": {"type": "integer"}},
        "guards": [
            {"query": "SELECT 1 FROM books WHERE id = :book", "error": "no book {book}"},
            {
                "query": "SELECT state = 'in', state FROM books WHERE id = :book",
                "error": "{book} is {state}",
            },
        ],
        "statements": [
            "UPDATE books SET state = 'out' WHERE id = :book",
            "INSERT INTO loans (book, days) VALUES (:book, :days)",
        ],
        "query": "SELECT max(id) AS loan FROM loans",
        "result": "loan {loan} of {book} for {days} days",
    },
    "price": {
        "description": "Price.",
        "parameters": {"book": {}, "price": {"type": "number"}, "sure": {"type": "boolean"}},
        "statements": ["UPDATE books SET price = :price WHERE id = :book AND :sure = 1"],
    },
    "call": {"description": "Call.", "result": "coming"},
    "blob": {"description": "Blob.", "statements": ["UPDATE books SET title = x'00'"]},
    "loop": {
        "description": "Loop.",
        "statements": ["DELETE FROM loans"],
        "query": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT max(i) FROM n",
    },
}


@pytest.fixture
def world() -> SqlWorld:
    database = Database()
    database.define("CREATE TABLE books (id TEXT PRIMARY KEY, title TEXT, state TEXT, price REAL)")
    database.define("CREATE TABLE loans (id INTEGER PRIMARY KEY, book TEXT, days INTEGER)")
    for number in range(4):
        row = {"title": f"it's {number}", "state": "in", "price": number / 2}
        database.insert("books", f"B{number}", row)
    database.define("CREATE UNIQUE INDEX one_loan ON loans (book)")
    database.ready(["loans"])
    return SqlWorld(database)


@pytest.fixture
def server() -> MemoryToolServer:
    tools = {name: SqlToolSpec.model_validate(tool) for name, tool in TOOLS.items()}
    return MemoryToolServer(sql_server(tools), stateless=True)


async def called(server: MemoryToolServer, world: World, tool: str, **arguments: Any) -> ToolResult:
    async with server.session(world) as session:
        return await session.call(ToolCall("1", tool, arguments))


@pytest.mark.anyio
async def test_tools_are_described_as_declared(server: MemoryToolServer, world: SqlWorld) -> None:
    async with server.session(world) as session:
        tools = {tool.name: tool for tool in session.tools}
    assert list(tools) == list(TOOLS)
    assert tools["find"].parameters == {
        "type": "object",
        "properties": {
            "word": {"type": "string", "description": "Part of a title.", "default": ""},
            "state": {"type": "string", "enum": ["in", "out"]},
        },
        "additionalProperties": False,
    }
    assert tools["lend"].parameters["required"] == ["book", "days"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("find", {"word": "s 1"}, "B1 costs 0.5, none"),
        ("find", {"word": "' OR 1 --"}, "none"),
        ("find", {"state": "out"}, "none"),
        ("find", {}, "B0 costs 0.0, none; B1 costs 0.5, none\n[the first 2 rows; there are more]"),
        ("list", {}, ('[{"id":"B0","price":0.0},{"id":"B1","price":0.5},{"id":"B2","price":1.0}]'
                      "\n[the first 3 rows; there are more]")),
        ("lend", {"book": "B1", "days": 3}, "loan 1 of B1 for 3 days"),
        ("lend", {"book": "B1", "days": 3.0}, "loan 1 of B1 for 3 days"),
        ("price", {"book": "B1", "price": 3, "sure": True}, "ok"),
        ("call", {}, "coming"),
    ],
)  # fmt: skip
async def test_answers_are_worded_as_declared(
    server: MemoryToolServer, world: SqlWorld, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = await called(server, world, tool, **arguments)
    assert (result.content, result.is_error) == (said, False)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("lend", {"book": "B9", "days": 1}, "no book B9"),
        ("lend", {}, "wrong arguments: book: is missing; days: is missing"),
        ("lend", {"book": "B1", "days": "3"},
         "wrong arguments: days: must be a whole number of at most 64 bits"),
        ("lend", {"book": "B1", "days": 2**63},
         "wrong arguments: days: must be a whole number of at most 64 bits"),
        ("lend", {"book": 1, "days": True},
         "wrong arguments: book: must be text; days: must be a whole number of at most 64 bits"),
        ("lend", {"bok": "B1", "book": "B1", "days": 1},
         "wrong arguments: bok: there is no such parameter; did you mean 'book'?"),
        ("find", {"state": "lost"}, "wrong arguments: state: must be one of in, out"),
        ("price", {"book": "B1", "price": 1, "sure": 1},
         "wrong arguments: sure: must be true or false"),
        ("loop", {}, "it takes more than 5,000,000 steps"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_is_an_answer_and_changes_nothing(
    server: MemoryToolServer, world: SqlWorld, tool: str, arguments: dict[str, Any], said: str
) -> None:
    mine = world.fork({"loans": {"5": {"book": "B3"}}})
    before = mine.fork()
    result = await called(server, mine, tool, **arguments)
    assert (result.content, result.is_error) == (said, True)
    assert equal(mine, before)


HEAVY = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400000) "
"""Rows that are few steps of SQLite's, and can be a megabyte each."""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ({"query": HEAVY + "SELECT max(length(printf('%.900000c', i))) AS m FROM n"},
         "more than 0.2 s of processor time"),
        ({"query": HEAVY + "SELECT count(DISTINCT printf('%.900000c', i) || i) AS m FROM n"},
         "more than 64 MB of memory"),
        ({"statements": [f"INSERT INTO books (id, title) {HEAVY} SELECT i, printf('%.900000c', i) FROM n"]},
         "more than 64 MB of memory"),
    ],
)  # fmt: skip
async def test_sql_that_would_take_all_of_the_machine_is_a_fault_of_the_server(
    world: SqlWorld, monkeypatch: pytest.MonkeyPatch, sql: dict[str, Any], said: str
) -> None:
    # Memory is used up faster than time, and the machine may be slow.
    monkeypatch.setattr(rules, "MAX_CPU_S", 0.2 if "processor" in said else 60.0)
    monkeypatch.setattr(rules, "MAX_GROWTH", 64 << 20)
    tool = SqlToolSpec.model_validate({"description": "Heavy.", **sql})
    server = MemoryToolServer(sql_server({"heavy": tool}), stateless=True)
    before = world.fork()
    with pytest.raises(ToolServerError, match=said):
        await called(server, world, "heavy")
    assert equal(world, before)
    assert world.query("SELECT count(*) AS n FROM books", {}) == [{"n": 4}], "it goes on"


@pytest.mark.anyio
async def test_a_call_happens_whole_or_not_at_all(
    server: MemoryToolServer, world: SqlWorld
) -> None:
    mine = world.fork({"loans": {"5": {"book": "B1"}}})
    before = mine.fork()
    result = await called(server, mine, "lend", book="B1", days=1)
    assert (result.content, result.is_error) == ("UNIQUE constraint failed: loans.book", True)
    assert equal(mine, before)


@pytest.mark.anyio
async def test_what_no_world_can_hold_is_the_domains_fault(
    server: MemoryToolServer, world: SqlWorld
) -> None:
    mine = world.fork()
    with pytest.raises(ToolServerError) as crash:
        await called(server, mine, "blob")
    assert str(crash.value) == (
        "tool server 'sql' crashed in a call of 'blob': its SQL wrote what no world holds (row 'B0' of "
        "'books' is none of a world: title is of type bytes, which is no JSON); let it write text, finite "
        "numbers or NULL"
    )
    assert equal(mine, world)


@pytest.mark.anyio
async def test_sessions_side_by_side_see_their_own_worlds(
    server: MemoryToolServer, world: SqlWorld
) -> None:
    worlds = [world.fork() for _ in range(3)]
    async with (
        server.session(worlds[0]) as first,
        server.session(worlds[1]) as second,
        server.session(worlds[2]) as third,
    ):
        for session, book in ((first, "B0"), (second, "B1"), (first, "B2"), (third, "B0")):
            result = await session.call(ToolCall("1", "lend", {"book": book, "days": 1}))
            assert not result.is_error
        again = await second.call(ToolCall("2", "lend", {"book": "B1", "days": 1}))
        other = await second.call(ToolCall("3", "lend", {"book": "B0", "days": 1}))
    assert again.content == "B1 is out"
    assert other.content == "loan 2 of B0 for 1 days"
    assert [sorted(own["loans"]) for own in worlds] == [["1", "2"], ["1", "2"], ["1"]]
    assert len(diff(worlds[0], worlds[2])) == 2


@pytest.mark.anyio
async def test_a_world_without_tables_is_told_apart(server: MemoryToolServer) -> None:
    with pytest.raises(ToolServerError, match="over a world that is none of tables"):
        await called(server, World({}), "call")
