"""A domain that the importer wrote, at work: what its `tools.py` gives to its `domain.yaml`.

Upstream has the agent write calls into its text, and so it does in `prompted.yaml`. In `domain.yaml` it
calls tools as its chat template has it: what it calls at once is one message, written here as upstream's
milestones are; each call of it is answered by itself, and an error does not keep the next one from running.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from muarl.compat.acebench.calls import Call, as_evaluated
from muarl.compat.acebench.entries import ByClass, Entry
from muarl.compat.acebench.environment import Environment
from muarl.compat.acebench.initial import initial_world
from muarl.compat.acebench.prompting import PROMPT, AceCalls, Prompt
from muarl.compat.acebench.score import (
    end_to_end,
    process_accuracy,
    saved,
    strictly_end_to_end,
)
from muarl.compat.acebench.solutions import solution
from muarl.compat.gold_expert import GoldExpert
from muarl.compat.imported_folder import read_imported
from muarl.compat.json_schema import json_schema
from muarl.compat.python_calls import NotCalls
from muarl.reward import Evidence
from muarl.spec import FactSpec, GoldCallSpec, PredicateSpec, RequestSpec, TaskSpec, UserGoalSpec
from muarl.world import World, plain

ENTRIES, RECORDS = "published.json", "records.json"
"""Files beside the domain's: its entries, and the messages and reminders that a task begins with."""
FINISHED = "finish conversation"
"""What ends a dialogue: the user says it, and in multi_step the agent."""
_TURNS = 20
"""Messages of the agent. With what answers them these are the 40 after which upstream stops, and looks
at the state."""
_DEVICE = ("wifi", "logged_in")


class Imported:
    """The domain, over the files of its folder."""

    def __init__(self, tools_py: str, *, prompted: bool = False) -> None:
        """Find the domain's files.

        Args:
            tools_py: They lie beside it.
            prompted: The agent writes its calls into its text.
        """
        self._folder = Path(tools_py).parent
        self._prompted = prompted
        self._call = _evaluated if prompted else _as_it_is

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Its entries by id; all have the same classes and functions."""
        return {entry.id: entry for entry in read_imported(self._folder / ENTRIES, list[Entry])}

    @cached_property
    def calls(self) -> AceCalls:
        """How calls stand in the agent's text."""
        entry = next(iter(self.entries.values()))
        return AceCalls(entry.kind, entry.functions, read_imported(self._folder / PROMPT, Prompt))

    @cached_property
    def _records(self) -> Mapping[str, Any]:
        records: dict[str, Any] = read_imported(self._folder / RECORDS, dict[str, Any])
        return records

    def begun(self, entry: Entry) -> World:
        """The world that a task begins with."""
        return initial_world(entry.involved, entry.initial_config, entry.language, self._records)

    def world(self) -> Any:
        """What all tasks begin with but for the device, which each has as it says."""
        entry = next(iter(self.entries.values()))
        return plain(self.begun(msgspec.structs.replace(entry, initial_config={})))

    def serve(self, world: World) -> Server[Any]:
        """The documented functions, as MCP tools over a dialogue's world."""
        entry = next(iter(self.entries.values()))
        offered = [
            Tool(
                name=function["name"],
                description=function.get("description", ""),
                input_schema=json_schema({**function["parameters"], "type": "object"}),
            )
            for function in entry.functions
        ]

        async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
            return ListToolsResult(tools=offered)

        async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
            environment = Environment(world, entry.involved, entry.language, entry.kind)
            answer = environment.run([self._call(params.name, params.arguments or {})])
            text = str(answer.message)
            is_error = not answer.ran or "Error during execution: " in text
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)

        return Server("acebench", on_list_tools=list_tools, on_call_tool=call_tool)

    def tasks(self, _split: str, _seed: int, _count: int) -> list[TaskSpec]:
        """The entries in their order."""
        return [self._task(entry) for entry in self.entries.values()]

    def _task(self, entry: Entry) -> TaskSpec:
        begun = plain(self.begun(entry))
        calls, _ = solution(entry, lambda: self.begun(entry))
        offered = {function["name"] for function in entry.functions}
        return TaskSpec(
            id=entry.id,
            split="test",
            goal=entry.question,
            user=_told(entry),
            world={
                name: {at: state[at] for at in _DEVICE}
                for name, state in begun.items()
                if "wifi" in state
            },
            gold=[
                GoldCallSpec(tool=call.name, arguments=call.arguments)
                for call in calls
                # Chinese solutions look for connecting flights with a tool that is not offered.
                if call.name in offered
            ],
            reward=[_asks("end_to_end", entry)],
            metrics=[_asks(name, entry) for name in ("process", "strict", "strict_process")],
        )

    def expert(
        self, task: TaskSpec, imperfections: Mapping[str, float], _rng: random.Random
    ) -> GoldExpert:
        """Who plays the gold calls; in multi_step it is who ends the dialogue."""
        return GoldExpert(task, imperfections, done=FINISHED)

    def end_to_end(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """End-to-end accuracy, as upstream has it."""
        entry = self.entries[task]
        verdict = end_to_end(self._replayed(evidence, entry)[0], entry.gold)
        errors = [error for check in verdict.checks for error in check.errors]
        return float(verdict.valid), "; ".join(errors) or "as upstream compares it"

    def strict(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """End-to-end accuracy where every class and all it holds must be right."""
        entry = self.entries[task]
        valid = strictly_end_to_end(self._replayed(evidence, entry)[0], entry.gold)
        return float(valid), "all classes, and all that they hold"

    def process(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """Process accuracy, as upstream has it."""
        entry = self.entries[task]
        state, said = self._replayed(evidence, entry)
        correct = end_to_end(state, entry.gold).valid
        return process_accuracy(said, entry.milestones, correct=correct), "milestones as texts"

    def strict_process(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """Process accuracy with milestones mended, compared as calls."""
        entry = self.entries[task]
        state, said = self._replayed(evidence, entry)
        share = process_accuracy(
            said,
            entry.milestones,
            correct=strictly_end_to_end(state, entry.gold),
            strict=True,
        )
        return share, "milestones as calls"

    def _replayed(self, evidence: Evidence, entry: Entry) -> tuple[Sequence[ByClass], list[str]]:
        """What is saved after as many messages as upstream allows, and what went to the tools."""
        world = evidence.initial
        environment = Environment(world, entry.involved, entry.language, entry.kind)
        said: list[str] = []
        ran = False
        for turn in evidence.turns[:_TURNS]:
            made = turn.message.tool_calls
            calls = [self._call(c.name, c.arguments) for c in made if c.error is None]
            if self._prompted:
                # Without a user, what is no call goes to the tools as well.
                if made or entry.kind == "multi_step":
                    said.append(turn.message.content)
                ran |= bool(made) and environment.run(calls).ran
                continue
            if calls:
                said.append(f"[{', '.join(_written(call) for call in calls)}]")
            for call in calls:
                ran |= environment.run([call]).ran
        return (saved(world) if ran else []), said


def _told(entry: Entry) -> UserGoalSpec | None:
    """What the other side of multi_step tells; in multi_turn only an LLM can be the user."""
    if entry.kind == "multi_turn":
        return None
    question = FactSpec(id="question", value=entry.question)
    return UserGoalSpec(requests=[RequestSpec(ask="solve", facts=[question])])


def _asks(function: str, entry: Entry) -> PredicateSpec:
    return PredicateSpec.model_validate(
        {"python": {"function": f"tools.py:{function}", "arguments": {"task": entry.id}}}
    )


def _as_it_is(name: str, arguments: Mapping[str, Any]) -> Call:
    return Call(name, dict(arguments))


def _evaluated(name: str, arguments: Mapping[str, Any]) -> Call:
    """A call that was read from a text: upstream writes it anew, and evaluates that."""
    try:
        return as_evaluated(name, arguments)
    except NotCalls:  # not read from a text
        return _as_it_is(name, arguments)


def _written(call: Call) -> str:
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
