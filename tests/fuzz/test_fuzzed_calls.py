"""Whatever a policy calls tools with, it is answered, and a refused call changes nothing.

Tools are the library's, a small SQL domain's with every type of parameter, and Python's.
"""

from __future__ import annotations

import copy
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import anyio
from fuzz_tally import TALLIES
from hostile import nested, values
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from muarl.domain import Domain, load_domain
from muarl.errors import ToolServerError
from muarl.json_values import json_problem
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.spec.sql import SqlToolSpec
from muarl.tools.memory import MemoryToolServer
from muarl.tools.protocol import ToolServer
from muarl.world import World, diff, plain
from muarl.world.sql import SqlWorld

TALLY = TALLIES["calls"]
LIBRARY = Path(__file__).parents[2] / "domains" / "library"

BANK = """\
version: 1
id: bank
summary: Accounts.
rules: Be kind.
world:
  sql:
    tables: |
      CREATE TABLE accounts (
        id TEXT PRIMARY KEY, held INTEGER NOT NULL DEFAULT 0, rate REAL, open INTEGER, note TEXT
      );
      CREATE TABLE log (what TEXT, amount REAL CHECK (amount < 5));
    rows:
      accounts:
        A: {held: 10, rate: 0.5, open: 1}
        B: {held: 3, rate: 1.5, open: 0, note: "'"}
tools:
  sql:
    note:
      description: Write a note.
      parameters:
        id: {enum: [A, B]}
        note: {required: false, default: none}
        amount: {type: integer}
        rate: {type: number, required: false}
        open: {type: boolean, required: false, default: true}
      guards:
        - {query: SELECT held + :amount >= 0 FROM accounts WHERE id = :id, error: "not {amount}, {id}"}
      statements:
        - |
          UPDATE accounts SET held = held + :amount, rate = coalesce(:rate, rate), open = :open,
            note = :note WHERE id = :id
        - INSERT INTO log VALUES (:note, :rate)
      query: SELECT id, held, note FROM accounts WHERE id = :id
      result: "{id} {held} {note} {amount}"
    find:
      description: Find accounts.
      parameters: {part: {}, least: {type: number}}
      query: SELECT id, rate * :least AS r FROM accounts WHERE note LIKE :part OR id GLOB :part
    sum:
      description: Sum up.
      parameters: {by: {type: integer}}
      query: SELECT sum(held) % :by AS s, printf('%d', :by) AS p, substr('abc', :by) AS t FROM accounts
writes: [note]
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
"""
BANK_TASKS = """\
version: 1
domain: bank
tasks: [{id: t, goal: Note it., personas: [plain], gold: [{tool: note, arguments: {id: A, amount: 1}}]}]
"""


def serve(world: World) -> MCPServer:
    """Python tools with parameters of many types."""
    server = MCPServer("python")

    @server.tool()
    async def put(key: str, value: Any) -> str:
        if not key:
            raise ToolError("no key")
        if problem := json_problem(value):
            raise ToolError(problem)
        world[key] = value
        return "ok"

    @server.tool()
    async def look(key: str, times: int = 1, how: Literal["all", "some"] = "all") -> dict[str, Any]:
        if key not in world or times > 10:
            raise ToolError(f"no {key!r}")
        return {"value": world[key], "times": times, "how": how}

    @server.tool()
    async def total(numbers: list[float], weights: dict[str, int] | None = None) -> float:
        return math.fsum(number for number in numbers[:10] if math.isfinite(number))

    return server


class Stage:
    """A server with its world and its tools.

    Args:
        server: The server.
        world: What each dialogue's world is a fork of.
        sql: Its tools, where they are SQL.
    """

    def __init__(self, server: ToolServer, world: World, sql: dict[str, SqlToolSpec]) -> None:
        self.server, self.world, self.sql = server, world, sql
        self.document = copy.deepcopy(plain(world))
        self.tools: tuple[ToolSpec, ...] = ()

    async def listed(self) -> tuple[ToolSpec, ...]:
        if not self.tools:
            async with self.server.session(self.world.fork()) as session:
                self.tools = session.tools
        return self.tools


@cache
def stages() -> list[Stage]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "domain.yaml").write_text(BANK)
        (home / "tasks.yaml").write_text(BANK_TASKS)
        domains = [load_domain(LIBRARY), load_domain(home)]
    python = MemoryToolServer(serve, stateless=True)
    document: dict[str, Any] = {"a": 1, "b": {"c": [1, 2]}}
    return [*map(_of_sql, domains), Stage(python, World(document), {})]


def _of_sql(domain: Domain) -> Stage:
    ((_, tools),) = domain.spec.sql_tools
    return Stage(domain.server, domain.base, tools)


def fuzz(data: st.DataObject) -> None:
    """Call tools of one server, a few times."""
    stage = data.draw(st.sampled_from(stages()))
    anyio.run(_dialogue, data, stage)


async def _dialogue(data: st.DataObject, stage: Stage) -> None:
    tools = await stage.listed()
    world, sibling = stage.world.fork(), stage.world.fork()
    async with stage.server.session(world) as session:
        for number in range(data.draw(st.integers(1, 4))):
            call = drawn(data, f"c{number}", tools, stage.document)
            before = world.fork()
            with TALLY.one(call):
                result = await answered(session.call, call)
                check(stage, call, result, before, world)
    assert not diff(sibling, stage.world), "another dialogue saw it"
    check_tables(sibling)
    assert plain(stage.world) == stage.document, "the base was written"


def drawn(data: st.DataObject, number: str, tools: tuple[ToolSpec, ...], document: Any) -> ToolCall:
    """A call of a tool that there is, or is not, with arguments good and bad."""
    tool = data.draw(st.sampled_from(tools))
    properties = tool.parameters.get("properties", {})
    how = data.draw(st.integers(0, 9))
    arguments = {
        name: _argument(data, schema, document, good=how > 5) for name, schema in properties.items()
    }
    if how == 0:
        arguments[data.draw(st.text(max_size=5))] = data.draw(values())
    elif how == 1 and arguments:
        del arguments[data.draw(st.sampled_from(sorted(arguments)))]
    elif how == 2:
        arguments = data.draw(st.dictionaries(st.text(max_size=5), values(), max_size=3))
    name = data.draw(values(1)) if how == 3 else tool.name
    return ToolCall(number, name if isinstance(name, str) else tool.name, arguments)


def _argument(
    data: st.DataObject, schema: dict[str, Any], document: dict[str, Any], *, good: bool
) -> Any:
    keys = {key for table in document.values() if isinstance(table, dict) for key in table}
    fitting = {
        "string": st.sampled_from(sorted({*keys, *document})),
        "integer": st.integers(-20, 20),
        "number": st.floats(-9, 9),
        "boolean": st.booleans(),
    }.get(schema.get("type", ""), values())
    if "enum" in schema:
        fitting = st.sampled_from(schema["enum"])
    if good:
        return data.draw(fitting)
    deep = st.sampled_from([nested(90), nested(900)])
    return data.draw(fitting | values() | st.integers(-(2**63), 2**63) | deep)


async def answered(call: Any, what: ToolCall) -> ToolResult | None:
    """The answer; None where a server is to blame that wrote what no world can hold."""
    try:
        result = await call(what)
    except ToolServerError as error:
        if "none of a world" not in str(error):
            raise
        return None
    assert isinstance(result, ToolResult)
    return result


def check(
    stage: Stage, call: ToolCall, result: ToolResult | None, before: World, world: World
) -> None:
    changes = diff(before, world)
    assert json_problem(plain(world)) is None
    if result is None or result.is_error:
        TALLY.note("refused" if result else "too much for a world")
        assert not changes, "a call that was refused changed the world"
    else:
        TALLY.note("answered")
        assert call.name in {tool.name for tool in stage.tools}
        if stage.sql:
            check_sql(stage.sql[call.name], call, changes)
    if result is not None:
        result.content.encode()
        assert (result.call_id, result.name) == (call.id, call.name)
    check_tables(world)


def check_tables(world: World) -> None:
    """What SQL is shown is what the world holds, and nothing of another call."""
    if isinstance(world, SqlWorld):
        for name, rows in plain(world).items():
            shown = world.query(f"SELECT * FROM {name}")
            assert sorted(map(repr, shown)) == sorted(map(repr, rows.values())), name


def check_sql(tool: SqlToolSpec, call: ToolCall, changes: list[Any]) -> None:
    """Nothing but the tool's own statements ran, with arguments of the declared types."""
    written = {change.path.partition(".")[0] for change in changes}
    declared = " ".join(tool.statements)
    assert all(table in declared for table in written), "a table that no statement names"
    assert set(call.arguments) <= set(tool.parameters)
    for name, parameter in tool.parameters.items():
        value = call.arguments.get(name)
        assert value is not None or not parameter.required
        assert value is None or parameter.problem(value) is None
        assert not isinstance(value, float) or math.isfinite(value)


@settings(max_examples=60, deadline=None, phases=[Phase.generate], database=None)
@given(data=st.data())
def test_hostile_calls_are_answered_and_refused_ones_change_nothing(data: st.DataObject) -> None:
    fuzz(data)
