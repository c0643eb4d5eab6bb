"""Law L3: dialogues that share a server, interleaved at every await, keep worlds of their own."""

from __future__ import annotations

import copy
import json
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server import MCPServer
from tool_kit import call

from muarl.tools.memory import MemoryToolServer
from muarl.world import World, WorldProxy, diff, plain

BASE: dict[str, Any] = {
    "orders": {"A": {"n": 0, "log": []}, "B": {"n": 5, "log": ["old"]}},
    "notes": {},
}


def serve(world: World) -> MCPServer:
    server = MCPServer("shared")

    @server.tool()
    async def add(order: str, by: int, yields: int) -> int:
        before = world["orders"][order]["n"]
        for _ in range(yields):
            await anyio.lowlevel.checkpoint()
        world["orders"][order]["n"] = before + by
        world["orders"][order]["log"].append(f"add {by}")
        return world["orders"][order]["n"]

    @server.tool()
    async def note(key: str, text: str) -> int:
        world["notes"][key] = text
        await anyio.lowlevel.checkpoint()
        return len(world["notes"])

    @server.tool()
    async def remove(order: str) -> bool:
        known = order in world["orders"]
        await anyio.lowlevel.checkpoint()
        if known:
            del world["orders"][order]
            world["orders"][order] = {"n": -1, "log": []}
        return known

    @server.tool()
    async def dump() -> dict:
        return world

    @server.tool()
    async def add_in_tasks(by: int) -> str:
        async def one(order: str) -> None:
            await anyio.lowlevel.checkpoint()
            world["orders"][order]["n"] += by

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "A")
            tasks.start_soon(one, "B")
        return "ok"

    @server.tool()
    def add_in_a_thread(by: int) -> str:
        world["orders"]["A"]["n"] += by
        return "ok"

    return server


def model(world: dict[str, Any], tool: str, arguments: dict[str, Any]) -> str:
    """What the tools above do, over a plain dict."""
    orders = world["orders"]
    if tool == "add":
        orders[arguments["order"]]["n"] += arguments["by"]
        orders[arguments["order"]]["log"].append(f"add {arguments['by']}")
        return str(orders[arguments["order"]]["n"])
    if tool == "note":
        world["notes"][arguments["key"]] = arguments["text"]
        return str(len(world["notes"]))
    if tool == "remove":
        known = arguments["order"] in orders
        if known:
            orders[arguments["order"]] = {"n": -1, "log": []}
        return json.dumps(known)
    if tool == "add_in_tasks":
        orders["A"]["n"] += arguments["by"]
        orders["B"]["n"] += arguments["by"]
        return "ok"
    return json.dumps(world)


small = st.integers(-3, 3)
order = st.sampled_from("AB")
made = st.one_of(
    st.tuples(
        st.just("add"),
        st.fixed_dictionaries({"order": order, "by": small, "yields": st.integers(0, 4)}),
    ),
    st.tuples(
        st.just("note"),
        st.fixed_dictionaries({"key": st.sampled_from("xyz"), "text": st.text(max_size=3)}),
    ),
    st.tuples(st.just("remove"), st.fixed_dictionaries({"order": st.sampled_from("ABC")})),
    st.tuples(st.just("add_in_tasks"), st.fixed_dictionaries({"by": small})),
    st.tuples(st.just("dump"), st.just({})),
)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=20, deadline=None)
@given(
    dialogues=st.lists(st.lists(made, max_size=6), min_size=2, max_size=8), stateless=st.booleans()
)
def test_each_dialogue_sees_its_own_writes_and_no_others(
    backend: str, dialogues: list[list[tuple[str, dict[str, Any]]]], stateless: bool
) -> None:
    server = MemoryToolServer(serve, stateless=stateless)
    base = World(copy.deepcopy(BASE))

    async def talk(calls: list[tuple[str, dict[str, Any]]]) -> None:
        world, expected = base.fork(), copy.deepcopy(BASE)
        async with server.session(world) as session:
            for tool, arguments in calls:
                result = await session.call(call(tool, **arguments))
                answer = model(expected, tool, arguments)
                same = json.loads if tool == "dump" else str
                assert same(result.content) == same(answer)
        assert diff(expected, world) == []
        assert plain(world) == expected

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for calls in dialogues:
                group.start_soon(talk, calls)

    anyio.run(main, backend=backend)
    assert plain(base) == BASE


@pytest.mark.anyio
async def test_a_hundred_dialogues_at_once() -> None:
    server = MemoryToolServer(serve, stateless=True)
    base = World(copy.deepcopy(BASE))
    worlds = [base.fork() for _ in range(100)]

    async def talk(n: int) -> None:
        async with server.session(worlds[n]) as session:
            for _ in range(3):
                await session.call(call("add", order="A", by=n, yields=n % 5))

    async with anyio.create_task_group() as group:
        for n in range(100):
            group.start_soon(talk, n)
    assert [world["orders"]["A"]["n"] for world in worlds] == [3 * n for n in range(100)]


@pytest.mark.anyio
async def test_calls_from_other_tasks_and_threads_reach_the_sessions_world() -> None:
    server = MemoryToolServer(serve, stateless=True)
    base = World(copy.deepcopy(BASE))
    mine, yours = base.fork(), base.fork()
    async with (
        server.session(mine) as first,
        server.session(yours) as second,
        anyio.create_task_group() as group,
    ):
        for _ in range(4):
            group.start_soon(first.call, call("add_in_a_thread", by=1))
            group.start_soon(second.call, call("add_in_a_thread", by=10))
    assert (mine["orders"]["A"]["n"], yours["orders"]["A"]["n"]) == (4, 40)


@given(st.lists(made, max_size=8))
@settings(max_examples=50, deadline=None)
def test_a_proxy_is_no_different_from_the_world_it_stands_for(
    calls: list[tuple[str, dict[str, Any]]],
) -> None:
    world = World(copy.deepcopy(BASE))
    proxy = WorldProxy(lambda: world)
    before = proxy.fork()
    for tool, arguments in calls:
        model(proxy, tool, arguments) if tool != "dump" else plain(proxy)  # type: ignore[arg-type]
    assert proxy == world
    assert plain(proxy) == plain(world)
    assert repr(proxy) == repr(world)
    assert list(proxy) == list(world)
    assert len(proxy) == len(world)
    assert [str(c) for c in diff(before, proxy)] == [str(c) for c in diff(before, world)]
    fork = proxy.fork({"notes": {"new": 1}})
    assert "new" in fork["notes"]
    assert "new" not in world["notes"]
    other = World({"orders": {}})
    world = other
    assert plain(proxy) == {"orders": {}}
    proxy["orders"]["Z"] = {}
    del proxy["orders"]["Z"]
    proxy["n"] = 1
    assert plain(other) == {"orders": {}, "n": 1}
