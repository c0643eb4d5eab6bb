"""What a tool server keeps for itself is part of the world, and recorded with the episode (L3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import TalkingUser as User
from dialogue_kit import dialogue, renderer
from msgspec import structs
from spec_files import spoil

from muarl.data.expert import ExpertPolicy
from muarl.data.proof import prove
from muarl.data.replay import Replayed, replay_all
from muarl.data.stored import StoredTasks
from muarl.domain import Domain, load_domain
from muarl.evaluate.rescore import rescore
from muarl.messages import Message, ToolCall
from muarl.record import Episode
from muarl.record.codec import decode_episode, encode_episode
from muarl.world import Change, plain

DOMAIN = """\
version: 1
id: lists
summary: Keeps a list, in the server.
rules: Keep the list.
tools:
  - python: tools.py:serve
    setup: [{tool: add, arguments: {item: {$world: first}}}]
    state: {items: {call: show}}
    hidden: [show]
  - {name: other, python: tools.py:serve, hidden: [show]}
writes: [tools_add]
world: {data: {first: milk}}
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
floor: 0.5
"""

TASKS = """\
version: 1
domain: lists
tasks:
  - id: eggs
    goal: Add eggs.
    personas: [plain]
    gold: [{tool: tools_add, arguments: {item: eggs}}]
    reward: [{world: {path: items.1, equals: eggs}}, {gold_world: true}, {world: {path: items.0, changed: false}}]
  - {id: nothing, goal: Leave it., personas: [plain], world: {first: tea}, gold: []}
"""

TOOLS = """\
import json

from mcp.server import MCPServer


def serve(world):
    items = []
    server = MCPServer("lists")

    @server.tool()
    async def add(item: str) -> str:
        items.append(item)
        return "ok"

    @server.tool()
    async def show() -> str:
        return json.dumps(items)

    return server
"""


class Adds:
    """An agent that adds one item, then says that it is done."""

    def __init__(self, item: str) -> None:
        self._call = ToolCall("c", "tools_add", {"item": item})

    def act(self, history: Any) -> Message:
        called = any(message.role == "tool" for message in history)
        return Message("assistant", "Done." if called else "", () if called else (self._call,))


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    for name, text in (("domain.yaml", DOMAIN), ("tasks.yaml", TASKS), ("tools.py", TOOLS)):
        (tmp_path / name).write_text(text)
    return load_domain(tmp_path)


@pytest.fixture
def episode(domain: Domain) -> Episode:
    policy = ExpertPolicy(Adds("eggs"), renderer())
    eggs = domain.tasks("train")[0]
    played = anyio.run(dialogue(domain, policy, User(["hi"]), task=eggs).run)
    assert played.error is None
    return decode_episode(encode_episode(played))


def test_an_episode_holds_the_state_before_it_and_what_changed(episode: Episode) -> None:
    assert episode.start == [Change("items", None, ["milk"], "added")]
    assert episode.changes == [Change("items.1", None, "eggs", "added")]
    assert episode.reward == 1
    assert [tool.name for tool in episode.tools] == ["tools_add", "other_add"]


def test_the_worlds_are_known_without_the_server(domain: Domain, episode: Episode) -> None:
    initial, final = StoredTasks(domain).worlds(episode)
    assert plain(initial) == {"first": "milk", "items": ["milk"]}
    assert plain(final) == {"first": "milk", "items": ["milk", "eggs"]}
    kept: list[Episode] = []

    async def again() -> None:
        await rescore(domain, [episode], kept.append)

    anyio.run(again)
    assert kept == [episode]


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (None, None),
        ("start", "the initial world differs from the recorded one: recorded `items: added"),
        ("changes", "the final world differs from the recorded one: recorded `items.1: added"),
    ],
)
def test_replay_finds_the_same_state_or_says_what_differs(
    domain: Domain, episode: Episode, part: str | None, says: str | None
) -> None:
    if part is not None:
        (change,) = getattr(episode, part)
        episode = structs.replace(episode, **{part: [structs.replace(change, after=["tea"])]})
    told: list[str] = []

    async def again() -> Replayed:
        return await replay_all(domain, [episode], lambda _, difference: told.append(difference))

    tally = anyio.run(again)
    if says is None:
        assert (told, tally.same) == ([], 1)
    else:
        assert tally.different == 1
        assert told[0].startswith(says)


def test_a_task_that_changes_nothing_is_compared_with_the_servers_own_start(domain: Domain) -> None:
    (task,) = (task for task in domain.tasks("train") if task.id == "nothing")
    gold = anyio.run(domain.gold_world, task)
    assert plain(gold) == {"first": "tea", "items": ["tea"]}


def proved(domain: Domain) -> list[str]:
    async def main() -> list[str]:
        return [str(finding.problem) for finding in (await prove(domain)).findings]

    return anyio.run(main)


def test_the_domain_is_sound(domain: Domain) -> None:
    assert proved(domain) == []


def test_doing_nothing_is_scored_in_the_world_that_the_server_began_with(tmp_path: Path) -> None:
    for name, text in (("domain.yaml", DOMAIN), ("tasks.yaml", TASKS), ("tools.py", TOOLS)):
        (tmp_path / name).write_text(text)
    spoil(
        tmp_path / "tasks.yaml",
        "items.1, equals: eggs}}, {gold_world: true}",
        "items.0, equals: milk}}",
    )
    (problem,) = (said for said in proved(load_domain(tmp_path)) if "already earns 1" in said)
    assert "task 'eggs': doing nothing already earns 1" in problem
