"""The laws that one's own worlds, users, tool servers and policies are held to: kept here, broken there."""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import sql_worlds
from dialogue_kit import write_notes

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.policy import GenerateRequest, Generation
from muarl.record import UserReply
from muarl.seeds import generator
from muarl.testing import (
    LawError,
    policy_laws,
    tool_server_laws,
    user_laws,
    world_laws,
)
from muarl.world import World
from muarl.world.nodes import copied
from muarl.world.sql import Refused, SqlWorld

CONTENT = {"orders": {f"W{n}": {"status": "pending", "items": [1, 2]} for n in range(9)}, "n": 0}


def write(world: World, rng: random.Random) -> None:
    order = world["orders"].setdefault(f"W{rng.randrange(12)}", {"status": "new", "items": []})
    order["status"] = rng.choice(["sent", "lost", "pending"])
    order["items"].append(rng.randrange(5))
    world["n"] = rng.randrange(3)


class Named(World):
    """A class of one's own that adds a method, and nothing to hand on."""

    def pending(self) -> list[str]:
        return [name for name, order in self["orders"].items() if order["status"] == "pending"]


class Mutable(World):
    """Hands out the base itself."""

    def __getitem__(self, key: str) -> Any:
        return self._base[key]


class Shared(World):
    """Forks share what was written."""

    def fork(self, patch: Mapping[str, Any] | None = None) -> World:
        fork = Shared(self._base)
        fork._over, fork._gone = self._over, self._gone
        return fork


class Plain(World):
    """Its forks are of the plain class."""

    def fresh(self) -> World:
        return World(self._base)


class Forgetful(World):
    """Forks begin anew."""

    def fork(self, patch: Mapping[str, Any] | None = None) -> World:
        return Forgetful(self._base)


class Unsaved(World):
    """Writes its base."""

    def save(self, path: Path) -> None:
        World(self._base).save(path)


class Aliased(World):
    """What it restores is what it is."""

    def restored(self, path: Path) -> World:
        restored = super().restored(path)
        assert isinstance(restored, World)
        alias = Aliased(self._base)
        copied(restored, alias)
        self._over["n"] = 7
        return alias


@pytest.mark.parametrize("kind", [World, Named])
def test_worlds_that_keep_the_laws(kind: type[World]) -> None:
    world_laws(kind(CONTENT), write)


def test_a_world_of_tables_keeps_them_whatever_sql_writes() -> None:
    def call(world: World, rng: random.Random) -> None:
        assert isinstance(world, SqlWorld)
        with suppress(Refused):
            statements = rng.sample(sql_worlds.WRITES, 2)
            values = {"key": f"B{rng.randrange(5)}", "text": rng.choice("tu"), "number": 1}
            sql_worlds.write(world, *statements, **values)

    world_laws(sql_worlds.library(), call, runs=40)


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (Mutable, "a write into a fork is seen in the base"),
        (Shared, "a write into a fork is seen in the base"),
        (Plain, "a fork is a World; override `fresh`"),
        (Forgetful, "a fork differs from what it was made of"),
        (Unsaved, "what `save` wrote is not what `restored` reads"),
        (Aliased, "a write into a restored world is seen in the base"),
    ],
)
def test_a_world_that_breaks_one_is_told_which(kind: type[World], broken: str) -> None:
    with pytest.raises(LawError, match=broken) as caught:
        world_laws(kind(copy.deepcopy(CONTENT)), write)
    assert str(caught.value).startswith("run 0 (random.Random(0)): ")


SHARED = [0]


class Counting:
    """Answers so often, then goes; as `how` says, she keeps the laws or breaks one."""

    def __init__(self, seed: int, how: str) -> None:
        self.rng, self.how, self.left = generator(seed), how, 3

    async def open(self) -> UserReply:
        return UserReply("Hi.")

    async def reply(self, agent_text: str) -> UserReply:
        self.left -= 1
        SHARED[0] += 1
        text: Any = str(self.rng.random())
        if self.how == "shared":
            text = str(SHARED[0])
        if self.how == "number":
            text = 3
        return UserReply(text, stop=self.left == 0 and self.how != "endless")


@pytest.mark.parametrize(
    ("how", "broken"),
    [
        ("", ""),
        ("shared", "keep what she draws and remembers in herself"),
        ("number", "expected a UserReply with a text"),
        ("endless", "after 100 messages she has not ended the dialogue"),
    ],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_users(how: str, broken: str, backend: str) -> None:
    async def look() -> None:
        await user_laws(lambda seed: Counting(seed, how))

    if not broken:
        anyio.run(look, backend=backend)
        return
    with pytest.raises(LawError, match=broken):
        anyio.run(look, backend=backend)


class Till:
    """A tool server over `n` of the world; as `how` says, it keeps the laws or breaks one."""

    def __init__(self, how: str, base: World) -> None:
        self.how, self.base, self.calls = how, base, 0

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[TillSession]:
        yield TillSession(self, self.base if self.how == "base" else world)


class TillSession:
    def __init__(self, server: Till, world: World) -> None:
        self.server, self.world = server, world
        names = ["add", "add"] if server.how == "twice" else ["add"]
        self.tools = tuple(ToolSpec(name, "Add.", {}) for name in names)

    async def call(self, call: ToolCall) -> ToolResult:
        how = self.server.how
        if call.name != "add":
            return ToolResult(call.id, call.name, "none", is_error=how != "meek")
        self.server.calls += 1
        self.world["n"] += self.server.calls if how == "drifts" else 1
        said = self.server.calls if how == "counts" else self.world["n"]
        return ToolResult("x" if how == "mixed" else call.id, call.name, str(said))


@pytest.mark.parametrize(
    ("how", "broken"),
    [
        ("", ""),
        ("base", "on equal worlds add was answered|changed a world that is not its session's"),
        ("twice", "two of its tools have one name: add, add"),
        ("counts", "on equal worlds add was answered '1' and '3'"),
        ("drifts", "on equal worlds add was answered"),
        ("mixed", "the answer to call 'a' is said to be to 'x'"),
        ("meek", "a tool that does not exist was answered without an error"),
    ],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tool_servers(how: str, broken: str, backend: str) -> None:
    base = World({"n": 0})
    calls = [ToolCall("a", "add", {}), ToolCall("b", "add", {})]

    async def look() -> None:
        await tool_server_laws(Till(how, base), base, calls)

    if not broken:
        anyio.run(look, backend=backend)
        return
    with pytest.raises(LawError, match=broken):
        anyio.run(look, backend=backend)


def test_a_domains_own_mcp_server_keeps_them(tmp_path: Path) -> None:
    domain = write_notes(tmp_path)
    calls = [
        ToolCall("a", "put", {"key": "a", "value": [1]}),
        ToolCall("b", "get", {"key": "a"}),
        ToolCall("c", "get", {"key": "b"}),
    ]
    anyio.run(tool_server_laws, domain.server, domain.base, calls)


class Dice:
    """Samples ids below 50; as `how` says, it keeps the laws or breaks one."""

    policy_version = 0

    def __init__(self, how: str) -> None:
        self.how, self.rng = how, random.Random(0)

    async def generate(self, request: GenerateRequest) -> Generation:
        await anyio.lowlevel.checkpoint()
        rng = self.rng if self.how == "unseeded" else random.Random(request.seed)
        wanted = request.max_tokens + (self.how == "long")
        ids = [rng.randrange(1, 50) for _ in range(wanted)]
        logprobs = [-1.0] * (wanted - (self.how == "short"))
        return Generation(ids, logprobs, "length", 0)


@pytest.mark.parametrize(
    ("how", "broken"),
    [
        ("", ""),
        ("unseeded", "seed 3: it sampled"),
        ("long", "asked for at most 1 tokens it returned 2 tokens; asked for 1"),
        ("short", "returned 1 tokens with 0 log-probs"),
    ],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_policies(how: str, broken: str, backend: str) -> None:
    request = GenerateRequest([1, 2], "d", 3, 8, 1.0, (0,))

    async def look() -> None:
        await policy_laws(Dice(how), request, 50)

    if not broken:
        anyio.run(look, backend=backend)
        return
    with pytest.raises(LawError, match=broken):
        anyio.run(look, backend=backend)


def test_a_policy_without_seeds_may_say_so() -> None:
    request = GenerateRequest([1, 2], "d", 3, 8, 1.0, (0,))

    async def look() -> None:
        await policy_laws(Dice("unseeded"), request, 50, seeded=False)

    anyio.run(look)
