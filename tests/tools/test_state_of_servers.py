"""Servers with state of their own: where they start, and what of it the world sees (law L3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from tool_kit import call

from muarl.errors import ToolServerError
from muarl.spec.tools import SetupCallSpec, StateSpec
from muarl.tools.carrier import Limits
from muarl.tools.memory import MemoryToolServer
from muarl.tools.state import StatefulToolServer
from muarl.world import World, diff, plain

pytestmark = pytest.mark.anyio


def notebook(kept: list[Any] | None = None) -> Callable[[World], MCPServer]:
    """A server that keeps notes, for each session its own, or in `kept`."""

    def serve(_world: World) -> MCPServer:
        notes: list[Any] = [] if kept is None else kept
        server = MCPServer("notebook")

        @server.tool()
        async def add(note: Any) -> str:
            if note == "":
                raise ToolError("an empty note")
            notes.append(note)
            return "ok"

        @server.tool()
        async def read(sort: bool = False) -> str:
            return json.dumps(sorted(notes) if sort else notes)

        @server.tool()
        async def say() -> str:
            return f"{len(notes)} notes"

        @server.resource("notes://all")
        def everything() -> str:
            return json.dumps({"notes": notes})

        return server

    return serve


READ = StateSpec(call="read")


def stateful(
    state: dict[str, StateSpec],
    *setup: tuple[str, dict[str, Any]],
    kept: list[Any] | None = None,
) -> StatefulToolServer:
    limits = Limits(hidden=frozenset(["read", "say"]))
    return StatefulToolServer(
        MemoryToolServer(notebook(kept), limits=limits),
        [SetupCallSpec(tool=tool, arguments=arguments) for tool, arguments in setup],
        state,
    )


async def test_the_state_is_in_the_world_before_the_dialogue_and_after_it() -> None:
    sources = {
        "notes": READ,
        "sorted": StateSpec(call="read", arguments={"sort": True}),
        "all": StateSpec(resource="notes://all"),
        "said": StateSpec(call="say", form="text"),
    }
    world = World({"own": 1})
    server = stateful(sources, ("add", {"note": "b"}))
    async with server.session(world) as session:
        assert [tool.name for tool in session.tools] == ["add"]
        start = world.fork()
        assert plain(start) == {
            "own": 1,
            "notes": ["b"],
            "sorted": ["b"],
            "all": {"notes": ["b"]},
            "said": "1 notes",
        }
        await session.call(call("add", note="a"))
        assert diff(start, world) == []
    assert [str(change) for change in diff(start, world)] == [
        "all.notes.1: added 'a'",
        "notes.1: added 'a'",
        "said: '1 notes' -> '2 notes'",
        "sorted.0: 'b' -> 'a'",
        "sorted.1: added 'b'",
    ]


async def test_a_task_sets_the_server_up_through_its_world() -> None:
    server = stateful({"notes": READ}, ("add", {"note": {"$world": "notes.0"}}))
    base = World({"notes": ["of the domain"]})
    for notes in (["of the domain"], ["of a task"], [{"deep": [1, {"$": 2}]}]):
        world = base.fork({"notes": notes})
        async with server.session(world):
            pass
        assert plain(world) == {"notes": notes}


async def test_a_dialogue_that_failed_reads_nothing() -> None:
    world = World({})

    async def lost() -> None:
        async with stateful({"notes": READ}).session(world) as session:
            await session.call(call("add", note="a"))
            raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        await lost()
    assert plain(world) == {"notes": []}


async def test_a_server_that_does_not_start_from_the_declared_world_is_refused_L3() -> None:
    server = stateful({"notes": READ})
    with pytest.raises(ToolServerError, match=r"from the dialogue's world \(notes\.0: removed 'x'"):
        async with server.session(World({"notes": ["x"]})):
            raise AssertionError("the task's world never reached the tools")


async def test_dialogues_that_share_the_servers_state_are_found_out_L3() -> None:
    server = stateful({"notes": READ}, kept=[])
    async with server.session(World({})) as session:
        await session.call(call("add", note="of the first"))
    with pytest.raises(ToolServerError, match="another state than in an earlier dialogue"):
        async with server.session(World({})):
            raise AssertionError("what the first dialogue wrote is still there")


@pytest.mark.parametrize(
    ("state", "setup", "says"),
    [
        (
            {"n": StateSpec(call="say")},
            (),
            r"answered 'say' \(tools\.state\.n\) without valid JSON",
        ),
        ({"n": StateSpec(call="say")}, (), "declare `form: text`"),
        ({"n": StateSpec(call="gone")}, (), r"a call of 'gone' \(tools\.state\.n\)"),
        ({"n": StateSpec(resource="notes://no")}, (), r"refused a read of 'notes://no' \(tools\.s"),
        ({}, (("add", {"note": ""}),), r"'add' \(tools\.setup\.0\) with an error: an empty note"),
        ({}, (("add", {"note": {"$world": "a.b"}}),), r"\(tools\.setup\.0\): 'a' is not in the w"),
    ],
)
async def test_what_cannot_be_set_up_or_read_is_one_clear_error(
    state: dict[str, StateSpec], setup: tuple[tuple[str, dict[str, Any]], ...], says: str
) -> None:
    with pytest.raises(ToolServerError, match=says):
        async with stateful(state, *setup).session(World({})):
            raise AssertionError("nobody knows what it starts from")
