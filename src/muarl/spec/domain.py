"""Domains: rules, tools, world, personas, and where tasks come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

from muarl.spec.base import LARGEST_WEIGHT, Fraction, Id, OneOf, PythonRef, Spec, Text
from muarl.spec.calls import CallsSpec, TemplateCallsSpec, Who
from muarl.spec.device import DeviceSpec
from muarl.spec.environment import EnvironmentSpec, with_environment
from muarl.spec.knobs import KnobsSpec
from muarl.spec.plugged import PluggedWorld
from muarl.spec.predicate import PredicateSpec
from muarl.spec.simulator import SimulatorSpec
from muarl.spec.sql import SqlToolSpec, SqlWorldSpec
from muarl.spec.task import Disclosure
from muarl.spec.tools import SimulatedToolsSpec, SqlToolsSpec, ToolsSpec, listed

Phrasings = dict[str, list[str]]
"""Act to templates; `{order_id}` stands for a fact, `{request}` for the request's own wording."""

SplitPhrasings = dict[Id, Phrasings]
"""Split, or `any`, to phrasings: held-out dialogues share no wording with training."""


class WorldSpec(OneOf):
    """Where the domain's world comes from: one of these."""

    data: dict[str, Any] | None = None
    """The world itself."""
    file: str | None = None
    """A JSON file, relative to the domain."""
    python: PythonRef | None = None
    """A function without arguments that returns the world, a mapping of what JSON can hold."""
    sql: SqlWorldSpec | None = None
    """Tables in SQL; a task's `world` patches rows: table to key to columns."""
    plugin: PluggedWorld | None = None
    """One of an installed package: `{name: options}`; see docs/plugins.md."""


class TaskSourceSpec(Spec):
    """Where tasks come from: files, a generator, or goals."""

    files: list[str] = []
    """Task files, relative to the domain; globs are allowed."""
    python: PythonRef | None = None
    """A function `generate(split: str, seed: int, count: int) -> list[TaskSpec]`."""
    goals: PythonRef | None = None
    """A `muarl.goals.Goals`: what users may want, of which tasks are composed and proved."""
    environment: bool = False
    """They are those of the domain's `environment`, and this need not be said."""
    splits: dict[Id, Annotated[int, Field(gt=0)]] = {}
    """For `python`, `goals` and an environment: how many tasks each split has."""
    seed: int = 0
    """Likewise: the seed the tasks are generated from."""

    @property
    def generator(self) -> str | None:
        """Python that makes the tasks, where it is not files that hold them."""
        return self.python or self.goals

    @property
    def loc(self) -> tuple[str, str]:
        """Where it is said what makes the tasks."""
        if self.environment:
            return "tasks", "splits"
        return "tasks", "goals" if self.goals is not None else "python"

    @model_validator(mode="after")
    def _one_source(self) -> TaskSourceSpec:
        if sum(map(bool, (self.files, self.python, self.goals, self.environment))) != 1:
            raise ValueError("give exactly one of files, python and goals")
        if (self.generator is not None or self.environment) != bool(self.splits):
            raise ValueError(
                "splits go with python or goals: name each split and its number of tasks"
            )
        return self


class PersonaSpec(Spec):
    """A manner of being a user."""

    style: Text
    """Her manner in words, for LLM users and for readers."""
    weight: Annotated[float, Field(ge=0, le=LARGEST_WEIGHT)] = 1.0
    """How often she is drawn, beside the other personas of a task: 2 is twice as often as 1."""
    disclose: dict[Id, Disclosure] = {}
    """Fact to how this persona tells it, whatever the task says: `order_id: never`."""
    patience: Annotated[int, Field(ge=0)] = 2
    """Unhelpful messages in a row that are borne; at the next the user leaves."""
    changes_mind: bool = False
    """At the first question whether to go ahead, she turns to the request's `instead`."""
    verbosity: Literal["terse", "usual", "talkative"] = "usual"
    """Scripted users choose among the shorter or the longer half of the wordings that fit."""
    tone: Id | None = None
    """Her register: `formal`, `casual`, ...; scripted users take the wordings of `user.voices` of
    that name."""
    language: Id | None = None
    """`fr`, `Portuguese`, ...; likewise, and before those of her tone."""
    knowledge: str = ""
    """What she knows of the matter, in words, for LLM users and for readers; what she does not know
    of a task is `disclose: never`."""
    goals: list[str] = []
    """What she wants beside the task's goal, in words, likewise."""
    knobs: KnobsSpec = KnobsSpec()
    """How often she shows a behaviour; a run's user may say otherwise."""
    phrasings: SplitPhrasings = {}
    """This persona's own wordings; an act given here replaces the domain's."""
    understands: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    """Acts that scripted users know by other phrases if they are like her, such as one who has to be
    told in plain words what others know by its name; an act given here replaces the domain's."""


class ActionSpec(Spec):
    """What a scripted user does on her device when the policy asks for it."""

    tool: str
    """One of the tools of `device`."""
    arguments: dict[str, Any] = {}
    """Its arguments. A text `{apn}` stands for her fact of that name; without such a fact she says
    that she does not know."""


PLAIN_UNDERSTOOD = {"confirm": ["shall i"], "refuse": ["cannot"], "done": ["anything else"]}
"""What shows the acts by which a dialogue gets on, where a domain names none of them."""


def _with_plain(given: dict[str, list[str]]) -> dict[str, list[str]]:
    return given if PLAIN_UNDERSTOOD.keys() & given.keys() else {**given, **PLAIN_UNDERSTOOD}


class UserScriptSpec(Spec):
    """How scripted users of this domain understand the policy and speak."""

    understands: Annotated[dict[str, list[str]], AfterValidator(_with_plain)] = Field(
        default={}, validate_default=True
    )
    """What the policy does (`confirm`: asks for a yes, `ask:<fact>`, `do:<action>`: asks her to do or
    to look at something, `refuse`, `done`) to phrases by which she knows it, wherever they stand in a
    message, in capitals or not. The first that is found counts, in the order of the file. Where none
    of `confirm`, `refuse` and `done` is given, `shall i`, `cannot` and `anything else` show them."""
    actions: dict[Id, ActionSpec] = {}
    """What she can be asked to do on her device, by the name that `do:<action>` has for it."""
    phrasings: SplitPhrasings = {}
    """Split to act to templates; left out, she speaks plain English. Acts: `open`, `next`, `ask:<intent>`, `tell:<fact>`, `confirm`,
    `deny`, `change`, `accept_refusal`, `unknown`, `unclear`, `stop`, `abandon`; and, with words of
    their own where none are given, `partly:<fact>`, `refuse`, `silence`, `digress`, `unavailable`,
    `push_back`, `challenge`, `pass`. After an action she says `did:<action>`, or `failed:<action>` if
    her tool answered with an error: `{result}` stands for the answer there, and where that is a JSON
    object `{airplane_mode}` for what is in it by that name, `{sim.status}` for what is deeper."""
    voices: dict[Id, SplitPhrasings] = {}
    """Languages and tones of personas, and how they word acts; the others as `phrasings` do."""

    def heard_by(self, persona: PersonaSpec) -> UserScriptSpec:
        """The same, with the phrases by which a persona knows what the policy does."""
        if not persona.understands:
            return self
        return self.model_copy(update={"understands": {**self.understands, **persona.understands}})


class BenchmarkSpec(Spec):
    """A public benchmark."""

    name: str
    """What it is called."""
    unsolved: list[Id] = []
    """Tasks that its own gold calls do not solve."""
    differs: list[str] = []
    """In what the domain differs from what is published, each a sentence that `muarl eval` prints."""


DomainToolsSpec = Annotated[
    list[ToolsSpec],
    BeforeValidator(listed, json_schema_input_type=ToolsSpec | list[ToolsSpec]),
]
"""One server or a list of them, which only an environment may leave empty."""

_OF_ENVIRONMENT = ("tools", "world", "personas", "reward")
"""What follows from an environment, where a domain has one."""


def _or_environment(schema: dict[str, Any]) -> None:
    """In the JSON Schema: what an environment stands for is required where there is none."""
    schema["required"] = [name for name in schema["required"] if name not in _OF_ENVIRONMENT]
    schema["anyOf"] = [{"required": [*_OF_ENVIRONMENT]}, {"required": ["environment", "tasks"]}]


class DomainSpec(Spec):
    """A domain's file, `domain.yaml`."""

    model_config = ConfigDict(json_schema_extra=_or_environment)

    version: Literal[1]
    """Version of this file's form."""
    id: Id
    """Name of the domain, in its task files and in reports."""
    summary: str
    """The domain in a sentence, for people."""
    rules: Text
    """What the agent must follow; it reads them before anything else, as its system prompt.
    A text, or the file that holds it: `{file: rules.md}`. An empty text is no system prompt."""
    environment: EnvironmentSpec | None = None
    """An environment of another library, which answers in the place of user and tools; `tasks` then names
    splits and their sizes, and `tools`, `world`, `personas` and `reward` need not be given."""
    tools: DomainToolsSpec
    """The tool servers: one, or a list. Needed, as `world`, `personas` and `reward` are, where there is no
    `environment`."""
    calls: CallsSpec = CallsSpec(template=TemplateCallsSpec())
    """How the agent calls them: `template`, or `text`."""
    writes: list[str] = []
    """Tools that change the world in a way that cannot be taken back. All others, but those under
    `terminal`, are taken to change nothing, which `muarl check` proves."""
    terminal: list[str] = []
    """Tools that end the dialogue when called successfully."""
    max_steps: Annotated[int, Field(gt=0)] | None = None
    """Messages with calls that the agent may send in a row before it must speak to the user. With one
    more the dialogue ends as truncated, once those calls are answered. Left out: no limit but the run's."""
    world: WorldSpec
    """What the tools read and write; each dialogue begins with a copy of its own."""
    shared: list[str] = []
    """Parts of the world whose records the tasks of every split may name, such as a catalogue or a
    timetable: `classes` for what lies in `classes`. All other records are of one split alone."""
    device: DeviceSpec | None = None
    """What the user can do herself, with tools of her own: dual control."""
    tasks: TaskSourceSpec = TaskSourceSpec(files=["tasks.yaml"])
    """What users want, and how it is known that they got it; left out, `tasks.yaml` beside it."""
    personas: dict[Id, PersonaSpec] = Field(min_length=1)
    """Manners of being a user; a task names those that can play it."""
    user: UserScriptSpec | None = None
    """What scripted users understand and say. Left out: only LLM users can play this domain."""
    simulator: SimulatorSpec | None = None
    """How an LLM is asked to play the user where a run says `user: simulator`, word by word."""
    expert: PythonRef | None = None
    """A function or class, called as `expert(task, imperfections, rng)`, that returns a scripted
    agent: for cold starts and proofs."""
    reward: list[PredicateSpec] = Field(min_length=1)
    """What a dialogue is worth: the lowest score of these, so that all must hold for reward 1."""
    training_reward: Annotated[list[PredicateSpec], Field(min_length=1)] | None = None
    """Counts instead while training, for all tasks but those with one of their own: what is asked
    for when a policy is evaluated need not be paid for, such as what must be said."""
    metrics: list[PredicateSpec] = []
    """Observed, never scored."""
    benchmark: BenchmarkSpec | None = None
    """The public benchmark whose published tasks these are. What `muarl check` finds about such tasks,
    as that two are nearly the same, is said of the benchmark and is no fault of the domain."""
    floor: Fraction = 0.15
    """Most that a policy without skill may earn on average (one that says nothing, refuses all,
    writes at random ...); `muarl check` objects to more."""

    @model_validator(mode="before")
    @classmethod
    def _of_environment(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("environment") is not None:
            return with_environment(data)
        return data

    @model_validator(mode="after")
    def _tasks_of_an_environment(self) -> DomainSpec:
        if self.tasks.environment and self.environment is None:
            raise ValueError("tasks.environment says that an environment has the tasks; name one")
        return self

    @field_validator("tools")
    @classmethod
    def _a_server(cls, tools: list[ToolsSpec], info: ValidationInfo) -> list[ToolsSpec]:
        if not tools and info.data.get("environment") is None:
            raise PydanticKnownError(
                "too_short", {"field_type": "List", "min_length": 1, "actual_length": 0}
            )
        return tools

    @property
    def is_simulated(self) -> bool:
        """Whether an LLM simulates tools of either side."""
        return any(isinstance(server, SimulatedToolsSpec) for server in self.all_servers)

    @property
    def writes_outside(self) -> bool:
        """Whether a call of a `writes` tool may change something beyond the dialogue's world."""
        return any(self.writes_outside_by("agent", tool) for tool in self.writes) or (
            self.device is not None
            and any(self.writes_outside_by("user", tool) for tool in self.device.writes)
        )

    @property
    def keeps_state(self) -> bool:
        """Whether a server keeps a part of the world, which is known once it has started."""
        return any(server.state for server in self.all_servers)

    @property
    def all_servers(self) -> list[ToolsSpec]:
        """The tool servers of both sides."""
        return [*self.tools, *(self.device.tools if self.device else ())]

    def writes_by(self, who: Who, tool: str) -> bool:
        """Whether a call may change something.

        Args:
            who: Who calls.
            tool: What.
        """
        side = self if who == "agent" else self.device
        return side is not None and tool in side.writes

    def writes_outside_by(self, who: Who, tool: str) -> bool:
        """Whether a call may change something beyond the dialogue's world.

        Args:
            who: Who calls.
            tool: What.
        """
        side = self if who == "agent" else self.device
        return (
            side is not None
            and self.writes_by(who, tool)
            and any(server.writes_outside for server in side.tools)
        )

    @property
    def sql_tools(self) -> list[tuple[tuple[str | int, ...], dict[str, SqlToolSpec]]]:
        """Tools in SQL, and where they stand in the file."""
        sides = [((), self.tools), (("device",), self.device.tools if self.device else [])]
        return [
            ((*at, "tools", index, "sql"), server.sql)
            for at, servers in sides
            for index, server in enumerate(servers)
            if isinstance(server, SqlToolsSpec)
        ]


TEXTS = (
    ("rules",),
    ("personas", "*", "style"),
    *(("simulator", text) for text in ("prompt", "react", "verify", "reflect")),
)
"""Where a file may stand for a text; `*` is any key."""
