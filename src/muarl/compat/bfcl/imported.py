"""A domain that the importer wrote, at work: what its `tools.py` gives to its `domain.yaml`.

The agent calls tools as its chat template has it, or writes its calls into its text where the domain is
for models that are prompted (`prompted.yaml`): upstream has both. Either way a call is written as the
Python text that upstream makes of it, and parsed.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from muarl.compat.bfcl.checker import Verdict, judged
from muarl.compat.bfcl.entries import Entry
from muarl.compat.bfcl.expressions import name_of, value_of, written
from muarl.compat.bfcl.official import official_verdict, require, trusted
from muarl.compat.bfcl.prompting import PROMPT, BfclCalls, Prompt
from muarl.compat.bfcl.sandbox import Sandbox, initial_state
from muarl.compat.bfcl.text_calls import execution_text
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.bfcl.upstream import Upstream
from muarl.compat.gold_expert import GoldExpert
from muarl.compat.imported_folder import read_imported
from muarl.compat.json_schema import json_schema
from muarl.reward import Evidence
from muarl.spec import GoldCallSpec, PredicateSpec, TaskSpec, TurnSpec
from muarl.world import World

ENTRIES, DOCS, ORIGIN = "published.json", "functions.json", "origin.json"
"""Files beside the domain's: its entries, the functions by class, and what was imported."""
MAX_STEPS = 20
"""Messages with calls in one turn; with the next one upstream's runner quits, once it was carried out."""
_NEW_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What the user says in a turn that has no message: the functions that were held back are shown."""


class Origin(msgspec.Struct, frozen=True):
    """What a domain was made from.

    Attributes:
        version: Of the benchmark.
        official_checker: Whether dialogues are judged by the installed package as well.
    """

    version: Version
    official_checker: bool


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
        self._written = execution_text if prompted else written

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Its entries by id."""
        return {entry.id: entry for entry in read_imported(self._folder / ENTRIES, list[Entry])}

    @cached_property
    def _docs(self) -> Mapping[str, list[dict[str, Any]]]:
        docs: Mapping[str, list[dict[str, Any]]] = read_imported(
            self._folder / DOCS, dict[str, list[dict[str, Any]]]
        )
        return docs

    @cached_property
    def _origin(self) -> Origin:
        origin: Origin = read_imported(self._folder / ORIGIN, Origin)
        return origin

    @cached_property
    def _upstream(self) -> Upstream:
        return Upstream(self, ".")

    @cached_property
    def calls(self) -> BfclCalls:
        """How calls stand in the agent's text."""
        return BfclCalls(
            self._origin.version, self._functions, read_imported(self._folder / PROMPT, Prompt)
        )

    @cached_property
    def _functions(self) -> Mapping[str, dict[str, Any]]:
        return {doc["name"]: doc for docs in self._docs.values() for doc in docs}

    def json(self, path: str) -> Any:
        """A file of the domain that holds tables."""
        return read_imported(self._folder / path, Any)

    def world(self) -> Any:
        """What all tasks begin with: nothing, since each has classes of its own."""
        return {}

    def server(self, name: str) -> Callable[[World], Server[Any]]:
        """The MCP server of one class, over a dialogue's world."""

        def serve(world: World) -> Server[Any]:
            offered = [
                Tool(
                    name=function["name"],
                    description=function["description"],
                    input_schema=json_schema(function["parameters"]),
                )
                for function in self._docs[name]
            ]

            async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
                return ListToolsResult(tools=offered)

            async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
                state = {name: world[name]} if name in world else {}
                sandbox = Sandbox(state, self._upstream, self._origin.version)
                answer = sandbox.call(self._written(params.name, params.arguments or {}))
                return CallToolResult(
                    content=[TextContent(type="text", text=answer.text)], is_error=answer.is_error
                )

            return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)

        return serve

    def tasks(self, _split: str, _seed: int, _count: int) -> list[TaskSpec]:
        """The entries in their order.

        Raises:
            SetupError: They are to be judged by the official checker as well, and it is not there.
        """
        if self._origin.official_checker:
            require(self._origin.version)
        return [self._task(entry) for entry in self.entries.values()]

    def _task(self, entry: Entry) -> TaskSpec:
        world = self._begun(entry)
        sandbox = self._sandbox(world)
        held_back = {name for names in entry.missed_function.values() for name in names}
        turns = [self._turn(entry, number) for number in range(len(entry.question))]
        metrics = ["irrelevance", *(["official"] if self._origin.official_checker else [])]
        return TaskSpec(
            id=entry.id,
            split="test",
            goal="\n".join(turn.says for turn in turns),
            turns=turns,
            tools=[
                function["name"]
                for of in entry.involved_classes
                for function in self._docs[of]
                if function["name"] not in held_back
            ],
            world=world,
            gold=[
                _gold(call, number, sandbox)
                for number, turn in enumerate(entry.ground_truth)
                for call in turn
            ],
            reward=[_asks("reward", entry)],
            metrics=[_asks(name, entry) for name in metrics],
        )

    def _turn(self, entry: Entry, number: int) -> TurnSpec:
        """What the user says in a turn; a prompted agent is told there of functions that were held back."""
        said = "\n".join(said.content for said in entry.question[number]) or _NEW_FUNCTIONS
        more = list(entry.missed_function.get(str(number), ()))
        if not (more and self._prompted):
            return TurnSpec(says=said, shows=more)
        return TurnSpec(says=f"{[self._functions[name] for name in more]}\n{said}")

    def _begun(self, entry: Entry) -> dict[str, Any]:
        return initial_state(
            entry.involved_classes, entry.initial_config, self._upstream, long=entry.is_long
        )

    def _sandbox(self, world: Any) -> Sandbox:
        return Sandbox(world, self._upstream, self._origin.version)

    def reward(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """Whether the entry is solved, as upstream judges it."""
        return _said(self._judged(evidence, task))

    def irrelevance(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """Whether nothing was called where gold calls nothing, which upstream no longer asks for."""
        acted = self._judged(evidence, task).acted_without_need
        return float(not acted), "called something without need" if acted else "acted where needed"

    def official(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """The same by the official checker.

        Raises:
            SetupError: It is not installed.
        """
        version = self._origin.version
        offered = self._sandbox(evidence.initial).functions
        calls = called(evidence, lambda name, given: trusted(self._written(name, given), offered))
        return _said(official_verdict(self.entries[task], version, calls))

    def expert(
        self, task: TaskSpec, imperfections: Mapping[str, float], _rng: random.Random
    ) -> GoldExpert:
        """Who plays the gold calls."""
        return GoldExpert(task, imperfections)

    def _judged(self, evidence: Evidence, task: str) -> Verdict:
        gold = self.entries[task].ground_truth
        calls = called(evidence, self._written)
        return judged(calls, gold, lambda: self._sandbox(evidence.initial))


def called(
    evidence: Evidence, text_of: Callable[[str, dict[str, Any]], str] = written
) -> list[list[list[str]]]:
    """What the agent called, by the user's turns and its own messages.

    A call that could not be read is none, and a message without calls no step.

    Args:
        evidence: Of the dialogue.
        text_of: Writes a call of a name and arguments.
    """
    turns: list[list[list[str]]] = [[]]
    for turn in evidence.turns:
        calls = turn.message.tool_calls
        step = [text_of(call.name, call.arguments) for call in calls if call.error is None]
        if step:
            turns[-1].append(step)
        if turn.reply is not None and not turn.reply.stop:
            turns.append([])
    return turns


def _said(verdict: Verdict) -> tuple[float, str]:
    where = "" if verdict.turn is None else f" in turn {verdict.turn}"
    return float(
        verdict.valid
    ), f"{verdict.error or 'states and responses are those of gold'}{where}"


def _gold(call: str, turn: int, sandbox: Sandbox) -> GoldCallSpec:
    """A gold call, with the names of what it gives by position."""
    name = name_of(call)
    function = sandbox.functions[name]

    def bound(*positional: Any, **named: Any) -> Mapping[str, Any]:
        return inspect.signature(function).bind(*positional, **named).arguments

    arguments = value_of(call, {**sandbox.functions, name: bound})
    return GoldCallSpec(tool=name, arguments=arguments, turn=turn)


def _asks(function: str, entry: Entry) -> PredicateSpec:
    return PredicateSpec.model_validate(
        {"python": {"function": f"tools.py:{function}", "arguments": {"task": entry.id}}}
    )
