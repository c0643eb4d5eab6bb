"""Domains over published MCP servers that know nothing of muarl, one from npm and one from PyPI."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import TalkingUser as User
from dialogue_kit import dialogue, renderer

from muarl.data.expert import ExpertPolicy
from muarl.data.proof import prove
from muarl.data.replay import replay_problem
from muarl.data.stored import StoredTasks
from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.record import Episode
from muarl.record.codec import decode_episode, encode_episode
from muarl.spec import TaskSpec
from muarl.world import plain

ROOT = Path(__file__).parents[2]
PROGRAMS = {"contacts": "mcp-server-memory", "tickets": "mcp-server-sqlite"}


def published(name: str) -> Domain:
    """The domain, if its server is installed."""
    program = PROGRAMS[name]
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if shutil.which(program, path=beside) is None:
        why = f"{program} is not installed; see scripts/install-tool-servers.sh"
        if os.environ.get("MUARL_REQUIRE_TOOL_SERVERS") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return load_domain(ROOT / "domains" / name)


class Plays:
    """An agent that makes the gold calls of a task, or only the first `calls` of them."""

    def __init__(self, task: TaskSpec, calls: int | None = None) -> None:
        self._calls = [
            ToolCall(f"c{i}", gold.tool, gold.arguments) for i, gold in enumerate(task.gold[:calls])
        ]

    def act(self, history: Any) -> Message:
        done = sum(message.role == "tool" for message in history)
        if done < len(self._calls):
            return Message("assistant", "", (self._calls[done],))
        return Message("assistant", "Done.")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_domain_is_sound(name: str) -> None:
    domain = published(name)

    async def proved() -> tuple[list[str], dict[str, Any]]:
        proof = await prove(domain, limit=1, dialogues=1)
        return [str(finding.problem) for finding in proof.findings], proof.floor

    findings, floor = anyio.run(proved)
    assert findings == []
    assert {policy: means["train"].value for policy, means in floor.items()} == dict.fromkeys(
        ["do_nothing", "refuse_all", "transfer_at_once", "random_write", "empty_reply"], 0.0
    )


@pytest.mark.parametrize(
    ("name", "backend", "path", "before", "after"),
    [
        ("contacts", "asyncio", "graph.entities.0.observations.1", "lives in Leeds", "phone 6001"),
        ("tickets", "trio", "tickets", "'lamp', 'status': 'open'", "'lamp', 'status': 'closed'"),
    ],
)
def test_the_reward_reads_the_servers_state(
    name: str, backend: str, path: str, before: str, after: str
) -> None:
    domain = published(name)
    task = domain.tasks("train")[0]

    async def play() -> Episode:
        policy = ExpertPolicy(Plays(task), renderer())
        return await dialogue(domain, policy, User(["hi"]), task=task).run()

    episode = decode_episode(encode_episode(anyio.run(play, backend=backend)))
    assert (episode.error, episode.reward) == (None, 1.0)
    (change,) = (change for change in episode.changes if change.path == path)
    assert before in change.before
    assert after in change.after
    world = StoredTasks(domain).worlds(episode)[1]
    assert after in str(plain(world))


def test_half_of_the_work_earns_nothing_and_is_replayed() -> None:
    domain = published("contacts")
    task = domain.tasks("train")[0]

    async def play() -> None:
        policy = ExpertPolicy(Plays(task, calls=1), renderer())
        episode = await dialogue(domain, policy, User(["hi"]), task=task).run()
        assert episode.reward == 0
        assert await replay_problem(domain, task, episode) is None

    anyio.run(play)
