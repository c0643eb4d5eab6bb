"""Tasks: what a user wants, and how it is known that she got it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Id, Spec
from muarl.spec.calls import Who
from muarl.spec.predicate import PredicateSpec

Disclosure = Literal["volunteer", "on_request", "never"]


class FactSpec(Spec):
    """One entry of the user's fact ledger."""

    id: Id
    """Its name in wordings and acts, `order_id`."""
    value: str
    """What the user says when she tells it."""
    disclose: Disclosure = "volunteer"
    """Told unasked, only when asked for, or never (the user then says she does not know)."""


class RequestSpec(Spec):
    """One thing the user asks for."""

    ask: Id
    """What she wants, in a word that the domain's wordings know: `cancel` is said by one of those
    under `ask:cancel`."""
    facts: list[FactSpec] = []
    """What belongs to this request: the order, the city."""
    instead: RequestSpec | None = None
    """At the first confirmation question the user changes her mind to this."""

    def all_facts(self) -> Iterator[FactSpec]:
        """Its facts, and those of what may replace it."""
        yield from self.facts
        if self.instead is not None:
            yield from self.instead.all_facts()


class UserGoalSpec(Spec):
    """The user's private goal, for scripted users."""

    requests: list[RequestSpec] = Field(min_length=1)
    """In the order she asks for them."""
    facts: list[FactSpec] = []
    """Facts that belong to her and not to one request, such as her account."""
    never_says: list[str] = []
    """What she must not say, whoever plays her: texts, compared by their words as `said` does."""


class GoldCallSpec(Spec):
    """One call of the calls that solve a task."""

    tool: str
    """Tool name."""
    arguments: dict[str, Any] = {}
    """Its arguments."""
    by: Who = "agent"
    """Who makes it: the agent, or the user on her own device."""
    turn: Annotated[int, Field(ge=0)] = 0
    """Where the task has `turns`: after which of them it is made, counted from 0."""


class TurnSpec(Spec):
    """One message of a user who says the same whatever the agent answers."""

    says: str
    """The message."""
    shows: list[str] = []
    """Tools that the agent is shown from this message on, beside the task's `tools`."""


class TaskSpec(Spec):
    """One task of a domain."""

    id: Id
    """Unique within the domain."""
    split: Id = "train"
    """Part of the tasks that it belongs to, such as those to train on. Splits share no entity and no
    wording, or evaluation would show what was learned by heart."""
    goal: str
    """The goal in words, for LLM users and for readers."""
    personas: list[Id] = Field(default=[], min_length=1)
    """Personas that can play this task, of which one is drawn; left out, all of the domain's."""
    user: UserGoalSpec | None = None
    """The goal as a ledger, for scripted users."""
    turns: list[TurnSpec] = []
    """What a `fixed` user says, in order: the next message whenever the agent sends one without calls."""
    tools: list[str] | None = None
    """Tools that the agent is shown from the beginning, in this order; left out, all of the domain's.
    What is not shown is there all the same: a call that names it is answered."""
    world: dict[str, Any] = {}
    """What is different in the world of this task: merged over the domain's, key by key."""
    gold: list[GoldCallSpec]
    """Calls that solve the task, in order; empty where the right thing is to change nothing."""
    reward: list[PredicateSpec] | None = None
    """What counts instead of the domain's `reward`."""
    training_reward: list[PredicateSpec] | None = None
    """Counts instead while training; default: the domain's `training_reward`, else the reward."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored; default: the domain's."""
    axes: dict[Id, int] = {}
    """Where it lies among the tasks, such as `writes: 2`: for whoever reads it and for the selection of
    dialogues. Composed tasks have what `muarl.goals` measures; nothing that is played follows from it."""

    def with_personas(self, all_of_them: Iterable[str]) -> TaskSpec:
        """The same, with those of the domain where it names none."""
        return self if self.personas else self.model_copy(update={"personas": [*all_of_them]})

    @property
    def content_hash(self) -> str:
        """Hash of everything in the task that a dialogue or its reward follows from."""
        return _hash(self.model_dump_json(exclude={"axes"}))

    @property
    def situation_hash(self) -> str:
        """Hash of what a dialogue is played on: same id, other text shows.

        Gold calls, reward and metrics are left out: they judge a dialogue, and may be mended after
        it.
        """
        return _hash(
            self.model_dump_json(exclude={"gold", "reward", "training_reward", "metrics", "axes"})
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class UserDefaultsSpec(Spec):
    """What all users of a file's tasks share."""

    requests: Annotated[list[RequestSpec], Field(min_length=1)] | None = None
    """Of tasks that give none."""
    facts: list[FactSpec] | None = None
    """Of tasks that give none."""
    never_says: list[str] | None = None
    """Of tasks that give none."""


class TaskDefaultsSpec(Spec):
    """What the tasks of a file share.

    Mappings are merged key by key; whatever else a task gives replaces what stands here, lists too.
    """

    split: Id | None = None
    """Of tasks that give none; likewise all that follows."""
    goal: str | None = None
    """The goal in words."""
    personas: Annotated[list[Id], Field(min_length=1)] | None = None
    """Personas that can play a task."""
    user: UserDefaultsSpec | None = None
    """A part of the goal as a ledger."""
    world: dict[str, Any] | None = None
    """Merged over the domain's world, and a task's own over it."""
    turns: list[TurnSpec] | None = None
    """The user's messages, where they are fixed."""
    tools: list[str] | None = None
    """Tools that the agent is shown."""
    gold: list[GoldCallSpec] | None = None
    """Calls that solve a task."""
    reward: list[PredicateSpec] | None = None
    """All must hold for reward 1."""
    training_reward: list[PredicateSpec] | None = None
    """Counts instead while training."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored."""
    axes: dict[Id, int] | None = None
    """Where they lie among the tasks."""


class TasksFile(Spec):
    """A file of tasks, `tasks.yaml`."""

    version: Literal[1]
    """Version of this file's form."""
    domain: Id
    """Domain they belong to."""
    defaults: TaskDefaultsSpec | None = None
    """What all tasks of this file share. It becomes part of each of them as the file is read."""
    tasks: list[TaskSpec]
    """The tasks."""

    @model_validator(mode="before")
    @classmethod
    def _give_defaults(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("tasks"), (list, tuple)):
            return data
        given = _as_given(data.get("defaults"))
        if not isinstance(given, Mapping):
            return data
        return {**data, "tasks": [_merged(given, _as_given(task)) for task in data["tasks"]]}

    @model_validator(mode="after")
    def _defaults_are_given(self) -> TasksFile:
        # Kept and written, they would be given anew to a task that says it wants none: `user: null`.
        self.__dict__["defaults"] = None
        return self


def _as_given(value: Any) -> Any:
    """A model as the mapping that it was made from."""
    return value.model_dump(exclude_unset=True) if isinstance(value, Spec) else value


def _merged(defaults: Any, given: Any) -> Any:
    if not isinstance(defaults, Mapping) or not isinstance(given, Mapping):
        return given
    both = {key: _merged(defaults[key], given[key]) for key in defaults.keys() & given.keys()}
    return {**defaults, **given, **both}
