"""The shipped shop and airline with fewer tasks, for tests of both: composing one takes a hundredth of a second."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio

from muarl.domain import Agent, Domain, load_domain
from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.testing.playing import play_agents
from muarl.world import World

DOMAINS = Path(__file__).parents[1] / "domains"


class Business:
    """A shipped domain, dialogues about its tasks, and single calls of its tools."""

    def __init__(self, name: str, **splits: int) -> None:
        self._name = name
        self._splits = splits

    @cached_property
    def domain(self) -> Domain:
        domain = load_domain(DOMAINS / self._name)
        domain.spec.tasks.splits.update(self._splits)
        return domain

    @cached_property
    def tasks(self) -> list[TaskSpec]:
        return [task for split in self._splits for task in self.domain.tasks(split)]

    def play(
        self, agent_for: Callable[[TaskSpec, random.Random], Agent], every: int = 1
    ) -> list[Episode]:
        """Dialogues about every so many-th task."""

        async def main() -> list[Episode]:
            return await play_agents(self.domain, self.tasks[::every], agent_for)

        return anyio.run(main)

    def call(self, world: World, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        async def main() -> ToolResult:
            async with self.domain.server.session(world) as session:
                return await session.call(ToolCall("c", tool, dict(arguments)))

        return anyio.run(main)


RETAIL = Business("retail", train=75, held_out=25)
AIRLINE = Business("airline", train=45, held_out=15)
