"""Domains, and agents that try a call again that failed on its way."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from msgspec import structs

from muarl.domain import Agent, Domain, load_domain
from muarl.messages import Message, ToolSpec
from muarl.spec import TaskSpec

ROOT = Path(__file__).parents[2]

FAILED = re.compile(r"Error: (HTTP \d{3} |the call timed out|the answer (is not|does not match) )")


@cache
def domain(name: str) -> Domain:
    return load_domain(ROOT / "domains" / name)


def first_tasks(name: str, count: int, split: str = "train") -> list[TaskSpec]:
    return list(domain(name).tasks(split)[:count])


class Retrying:
    """An agent that makes a call again when it failed on its way, and otherwise does as another."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._tries = 0

    def act(self, history: Sequence[Message]) -> Message:
        last = history[-1]
        if last.role == "tool" and FAILED.match(last.content):
            made = next(message for message in reversed(history) if message.role == "assistant")
            self._tries += 1
            again = structs.replace(made.tool_calls[0], id=f"again_{self._tries}")
            return structs.replace(made, tool_calls=(again,))
        return self._agent.act(history)


def experts(name: str, *, retry: bool) -> Callable[[TaskSpec, random.Random], Agent]:
    def expert(task: TaskSpec, rng: random.Random) -> Agent:
        agent = domain(name).expert(task, {}, rng)
        return Retrying(agent) if retry else agent

    return expert


def tool(name: str, description: str = "", *parameters: str) -> ToolSpec:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return ToolSpec(name, description, schema)
