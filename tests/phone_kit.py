"""A domain of two sides for tests: a carrier's account, and the phone in the user's hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muarl.domain import Domain, load_domain
from muarl.messages import ToolCall, ToolResult
from muarl.record import UserReply
from muarl.spec import TaskSpec
from muarl.user import Device

DOMAIN = """\
version: 1
id: phones
summary: Lines and phones.
rules: Mend lines. The user has a phone.
tools: {python: tools.py:account, stateless: true}
writes: [set_line]
world: {data: {lines: {L1: {active: true}, L2: {active: true}}}}
device:
  tools: {python: tools.py:phone, stateless: true}
  writes: [set_airplane]
  world: {data: {line: L1, airplane: false, service: true, can_call: true}}
  sync:
    - {from: "lines.{device.line}.active", to: device.service}
    - {python: "sync.py:sync"}
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
"""

TASKS = """\
version: 1
domain: phones
tasks:
  - id: both
    goal: Have service again.
    personas: [plain]
    world: {lines: {L1: {active: false}}, device: {airplane: true}}
    gold:
      - {tool: set_line, arguments: {line: L1, active: true}}
      - {tool: set_airplane, arguments: {on: false}, by: user}
"""

TOOLS = """\
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def account(world):
    server = MCPServer("account")

    @server.tool()
    async def set_line(line: str, active: bool) -> str:
        if line not in world["lines"]:
            raise ToolError(f"no line {line}")
        world["lines"][line]["active"] = active
        return "ok"

    @server.tool()
    async def get_line(line: str) -> dict:
        return {"active": world["lines"][line]["active"]} if line in world["lines"] else {}

    return server


def phone(world):
    server = MCPServer("phone")

    @server.tool()
    async def set_airplane(on: bool) -> dict:
        if world["airplane"] == on:
            raise ToolError("it is so already")
        world["airplane"] = on
        return {"airplane": on}

    @server.tool()
    async def status() -> dict:
        return {"airplane": world["airplane"], "can_call": world["can_call"]}

    return server
"""

SYNC = """\
def sync(world):
    device = world["device"]
    device["can_call"] = device["service"] and not device["airplane"]
"""


def write_phones(folder: Path, **files: str) -> Domain:
    """The domain `phones`, in a folder of its own; `files` stand for its own (`domain`, `sync`...)."""
    texts = {"domain": DOMAIN, "tasks": TASKS, "tools": TOOLS, "sync": SYNC, **files}
    for name, text in texts.items():
        suffix = "yaml" if name in ("domain", "tasks") else "py"
        (folder / f"{name}.{suffix}").write_text(text)
    return load_domain(folder)


def phone_task(**fields: Any) -> TaskSpec:
    """A task of `phones` in which nothing is wrong and nothing is to be done."""
    given: dict[str, Any] = {"id": "both", "goal": "Talk.", "personas": ["plain"], "gold": []}
    return TaskSpec(**(given | fields))


def use(tool: str, **arguments: Any) -> ToolCall:
    """A call."""
    return ToolCall(f"c-{tool}", tool, arguments)


class Handy:
    """A user who makes some calls before each thing she says, then leaves.

    Attributes:
        answers: What her tools answered.
    """

    def __init__(self, *acts: Sequence[ToolCall]) -> None:
        self._acts = list(acts)
        self._device: Device | None = None
        self.answers: list[ToolResult] = []

    def take(self, device: Device) -> None:
        self._device = device

    async def open(self) -> UserReply:
        return await self._speak("hello")

    async def reply(self, agent_text: str) -> UserReply:
        return await self._speak("and now?")

    async def _speak(self, text: str) -> UserReply:
        if not self._acts:
            return UserReply("bye", stop=True, act="stop")
        for call in self._acts.pop(0):
            assert self._device is not None
            self.answers.append(await self._device.call(call))
        return UserReply(text)
