"""Dual control over tables: her device beside them, or her tools in SQL over the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dialogue_kit import called, dialogue, ids_of
from phone_kit import Handy, use

from muarl.data.replay import replay_differences
from muarl.domain import Domain, load_domain
from muarl.record import Episode
from muarl.testing import ScriptedPolicy
from muarl.world import plain

pytestmark = pytest.mark.anyio

WORLD = """\
version: 1
id: lines
summary: Lines and phones.
rules: Mend lines.
world:
  sql:
    tables: |
      CREATE TABLE lines (number TEXT PRIMARY KEY, active INTEGER NOT NULL);
      CREATE TABLE phones (number TEXT PRIMARY KEY REFERENCES lines, airplane INTEGER NOT NULL);
    rows:
      lines: {"555.1": {active: 0}}
      phones: {"555.1": {airplane: 1}}
tools:
  sql:
    resume:
      description: Resume a line.
      parameters: {number: {}}
      statements: ["UPDATE lines SET active = 1 WHERE number = :number"]
writes: [resume]
"""
REST = """\
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
"""
BESIDE = """\
device:
  tools: {python: phone.py:serve, stateless: true}
  writes: [fly]
  world: {data: {number: "555.1", airplane: false, active: 1}}
  sync:
    - {from: "lines.{device.number}.active", to: device.active}
    - {from: device.airplane, to: "phones.{device.number}.airplane"}
"""
IN_TABLES = """\
device:
  tools:
    sql:
      fly:
        description: Airplane mode.
        parameters: {on: {type: boolean}}
        statements: ["UPDATE phones SET airplane = :on"]
      look:
        description: Look.
        query: SELECT airplane, active FROM phones JOIN lines USING (number)
  writes: [fly]
"""
PHONE = """\
from mcp.server import MCPServer


def serve(world):
    server = MCPServer("phone")

    @server.tool()
    async def fly(on: bool) -> str:
        world["airplane"] = int(on)
        return "ok"

    @server.tool()
    async def look() -> dict:
        return {"airplane": world["airplane"], "active": world["active"]}

    return server
"""
TASKS = """\
version: 1
domain: lines
tasks:
  - id: both
    goal: Have service again.
    personas: [plain]
    world: {WORLD}
    gold:
      - {tool: resume, arguments: {number: "555.1"}}
      - {tool: fly, arguments: {on: false}, by: user}
"""


def written(folder: Path, device: str, world: str) -> Domain:
    (folder / "domain.yaml").write_text(WORLD + device + REST)
    (folder / "tasks.yaml").write_text(TASKS.replace("{WORLD}", world))
    (folder / "phone.py").write_text(PHONE)
    return load_domain(folder)


async def talk(domain: Domain) -> tuple[Episode, Any]:
    """The agent resumes the line, and she leaves airplane mode; and what she saw on the way."""
    her = Handy([use("look")], [use("fly", on=False), use("look")])
    resume = called('{"name": "resume", "arguments": {"number": "555.1"}}')
    policy = ScriptedPolicy((resume, "turn it off", "bye"), encode=ids_of)
    task = domain.tasks("train")[0]
    episode = await dialogue(domain, policy, her, task=task).run()
    assert await replay_differences(domain, task, episode) == []
    return episode, [answer.content for answer in her.answers]


async def test_a_device_beside_tables_is_changed_by_tasks_and_kept_in_step(tmp_path: Path) -> None:
    domain = written(tmp_path, BESIDE, "{device: {airplane: 1}, lines: {'555.1': {active: 0}}}")
    episode, saw = await talk(domain)
    assert episode.reward == 1.0, episode.error
    assert saw == ['{"airplane":1,"active":0}', "ok", '{"airplane":0,"active":1}']
    assert [str(change) for change in episode.changes] == [
        "device.active: 0 -> 1",
        "device.airplane: 1 -> 0",
        'lines."555.1".active: 0 -> 1',
        'phones."555.1".airplane: 1 -> 0',
    ]
    world = domain.world_for(domain.tasks("train")[0])
    world.save(tmp_path / "world.db")
    again = domain.base.restored(tmp_path / "world.db")
    assert plain(again["device"]) == {"number": "555.1", "airplane": 1, "active": 0}
    assert again == world


async def test_her_tools_may_be_sql_over_the_domains_tables(tmp_path: Path) -> None:
    domain = written(tmp_path, IN_TABLES, "{phones: {'555.1': {airplane: 1}}}")
    episode, saw = await talk(domain)
    assert episode.reward == 1.0, episode.error
    assert saw[0] == '[{"airplane":1,"active":0}]'
    assert saw[2] == '[{"airplane":0,"active":1}]'
