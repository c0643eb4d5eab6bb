"""Domains: rules, tools, world, personas, and where tasks come from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Id, PythonRef, Spec
from muarl.spec.predicate import PredicateSpec
from muarl.spec.task import Disclosure

Phrasings = dict[str, list[str]]
"""Act to templates; `{order_id}` stands for a fact, `{request}` for the request's own wording."""

SplitPhrasings = dict[Id, Phrasings]
"""Split, or `any`, to phrasings: held-out dialogues share no wording with training."""


class ToolsSpec(Spec):
    """Where the domain's MCP server comes from: one of `python` and `command`."""

    python: PythonRef | None = None
    """A function `serve(world) -> mcp.server.MCPServer`, run in memory."""
    stateless: bool = False
    """`serve` keeps no state outside `world`: it is called once and shared by all dialogues."""
    command: Annotated[list[str], Field(min_length=1)] | None = None
    """Program and arguments of a stdio server, started once per dialogue in the domain's folder."""
    world_resource: str | None = None
    """For `command`: URI of a resource that returns the server's final state as JSON."""
    external: bool | None = None
    """Whether calls of the `writes` tools change something outside the dialogue's own world, such as
    a database. A dialogue that made such a call is never run again after a fault. Left out: no for
    `python` and for a `command` whose `world_resource` shows its state, yes for any other."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds the server may take to start and list its tools."""
    call_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds one call may take."""
    max_result_chars: Annotated[int, Field(gt=0)] = 20_000
    """Longer results are cut, and the cut is said in the result."""
    on_crash: Literal["fault", "answer"] = "fault"
    """What it is when a tool raises something else than `ToolError`: a fault of the server, which is
    neither scored nor trained on, or an answer `tool failed`, for servers that crash on arguments
    they should refuse."""

    @model_validator(mode="after")
    def _one_source(self) -> ToolsSpec:
        if (self.python is None) == (self.command is None):
            raise ValueError("give exactly one of python and command")
        return self

    @property
    def writes_outside(self) -> bool:
        """Whether a write outlives the dialogue; see `external`."""
        if self.external is not None:
            return self.external
        return self.command is not None and self.world_resource is None


class WorldSpec(Spec):
    """Where the domain's world comes from: one of these."""

    data: dict[str, Any] | None = None
    """The world itself."""
    file: str | None = None
    """A JSON file, relative to the domain."""
    python: PythonRef | None = None
    """A function without arguments that returns the world."""

    @model_validator(mode="after")
    def _one_source(self) -> WorldSpec:
        if sum(x is not None for x in (self.data, self.file, self.python)) != 1:
            raise ValueError("give exactly one of data, file and python")
        return self


class TaskSourceSpec(Spec):
    """Where tasks come from: files, or a generator."""

    files: list[str] = []
    """Task files, relative to the domain; globs are allowed."""
    python: PythonRef | None = None
    """A function `generate(split: str, seed: int, count: int) -> list[TaskSpec]`."""
    splits: dict[Id, Annotated[int, Field(gt=0)]] = {}
    """For `python`: how many tasks each split has."""
    seed: int = 0
    """For `python`: the seed the tasks are generated from."""

    @model_validator(mode="after")
    def _one_source(self) -> TaskSourceSpec:
        if bool(self.files) == (self.python is not None):
            raise ValueError("give exactly one of files and python")
        if (self.python is not None) != bool(self.splits):
            raise ValueError("splits go with python: name each split and its number of tasks")
        return self


class PersonaSpec(Spec):
    """A manner of being a user."""

    style: str
    """In words, for LLM users and for readers."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """Share among the personas of a task when one is drawn."""
    disclose: dict[Id, Disclosure] = {}
    """Fact id to how this persona discloses it, whatever the task says."""
    patience: Annotated[int, Field(ge=0)] = 2
    """Unhelpful messages in a row that are borne; at the next the user leaves."""
    changes_mind: bool = False
    """Takes up a request's `instead` at the first confirmation question."""
    phrasings: SplitPhrasings = {}
    """This persona's own wordings; an act given here replaces the domain's."""


class UserScriptSpec(Spec):
    """How scripted users of this domain understand the policy and speak."""

    understands: dict[str, list[str]]
    """Agent act to phrases that show it (case ignored), tried in order. Acts: `confirm`,
    `ask:<fact>`, `refuse`, `done`."""
    phrasings: SplitPhrasings
    """Split to act to templates. Acts: `open`, `next`, `ask:<intent>`, `tell:<fact>`, `confirm`,
    `deny`, `change`, `accept_refusal`, `unknown`, `unclear`, `stop`, `abandon`."""


class DomainSpec(Spec):
    """One domain."""

    version: Literal[1]
    """Version of this file's form."""
    id: Id
    """Name of the domain."""
    summary: str
    """One sentence."""
    rules: str
    """What the agent must follow; the system prompt."""
    tools: ToolsSpec
    """The tool server."""
    writes: list[str] = []
    """Tools that change the world in a way that cannot be taken back."""
    terminal: list[str] = []
    """Tools that end the dialogue when called successfully."""
    world: WorldSpec
    """The state behind the tools."""
    tasks: TaskSourceSpec
    """The tasks."""
    personas: dict[Id, PersonaSpec] = Field(min_length=1)
    """Users of this domain."""
    user: UserScriptSpec | None = None
    """Language of scripted users."""
    expert: PythonRef | None = None
    """A function `expert(task, imperfections, rng) -> agent`, for cold starts and proofs."""
    reward: list[PredicateSpec] = Field(min_length=1)
    """All must hold for reward 1."""
    training_reward: Annotated[list[PredicateSpec], Field(min_length=1)] | None = None
    """Counts instead while training, for all tasks but those with one of their own: what is asked
    for when a policy is evaluated need not be paid for, such as what must be said."""
    metrics: list[PredicateSpec] = []
    """Observed, never scored."""
    floor: Fraction = 0.15
    """Highest mean reward a trivial policy may reach."""
