"""Domains that are an environment of another library: it answers in the place of user and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Id, OneOf, PythonRef, Spec

ENVIRONMENT = "environment"
"""Where the world of a dialogue holds what its environment was given, and what became of it."""

BEGINNING: dict[str, Any] = {"messages": 0, "over": False, "return": 0.0}
"""What it holds there before anybody has said anything: messages of the policy that were answered, whether
it is over, and what was earned."""

Seconds = Annotated[float, Field(gt=0)]


class GymnasiumSpec(Spec):
    """An environment in Gymnasium's form, whose observations are text: `reset(seed=...)`, `step(action)`."""

    make: PythonRef | None = None
    """A function or class that returns a new one: `env.py:make`, called with `arguments` by name."""
    id: Annotated[str, Field(min_length=1)] | None = None
    """Instead: what Gymnasium has registered, as `gymnasium.make` takes it: `package.module:Name-v0`."""
    arguments: dict[str, Any] = {}
    """What it is made with."""
    choices: list[Annotated[str, Field(min_length=1)]] = []
    """What the actions 0, 1, 2, ... are called, in order. Left out, a message is the action, and a number
    where the environment numbers its actions."""
    action: Literal["message", "call"] = "message"
    """How the policy acts: what it says is the action, or it calls the tool `act(action=...)`."""

    @model_validator(mode="after")
    def _one_source(self) -> GymnasiumSpec:
        if (self.make is None) == (self.id is None):
            raise ValueError("give exactly one of make and id")
        known = [choice.casefold() for choice in self.choices]
        if len(set(known)) < len(known):
            raise ValueError("two choices are the same but for capitals; name each action once")
        return self


class VerifiersSpec(Spec):
    """An environment of verifiers: its rows are the tasks, and its rubric says what a dialogue earns."""

    load: PythonRef | None = None
    """A function that returns one: `env.py:load_environment`, called with `arguments` by name."""
    id: Annotated[str, Field(min_length=1)] | None = None
    """Instead: an installed package's, as `verifiers.load_environment` takes it: `my-env`."""
    arguments: dict[str, Any] = {}
    """What it is loaded with."""
    evaluation: list[Id] = []
    """Splits whose tasks are rows of its evaluation data set. Those of the others are rows of its training
    data set; each begins where the one before it ends."""

    @model_validator(mode="after")
    def _one_source(self) -> VerifiersSpec:
        if (self.load is None) == (self.id is None):
            raise ValueError("give exactly one of load and id")
        return self


class EnvironmentSpec(OneOf):
    """Who answers the policy: one of these."""

    beside = frozenset({"answer_s"})

    gymnasium: GymnasiumSpec | None = None
    """An environment in Gymnasium's form."""
    verifiers: VerifiersSpec | None = None
    """An environment of verifiers."""
    answer_s: Seconds = 60.0
    """Seconds it may take to begin, and to answer one message; longer is a fault of the environment."""


def with_environment(data: Mapping[str, Any]) -> dict[str, Any]:
    """A domain's file with what follows from its environment: no tools, an empty world, one persona.

    Raises:
        ValueError: It says what an environment leaves no room for.
    """
    for key, instead in _INSTEAD.items():
        if data.get(key):
            raise ValueError(f"a domain with an environment has no {key}: {instead}; leave it out")
    source = data.get("tasks")
    if isinstance(source, Mapping):
        if given := source.keys() & {"files", "python", "goals"}:
            raise ValueError(
                f"the tasks are the environment's own: name splits and their sizes, and leave "
                f"tasks.{min(given)} out"
            )
        source = {**source, "environment": True}
    return {
        "tools": [],
        "world": {"data": {}},
        "personas": {"environment": {"style": "An environment answers."}},
        "reward": [{"scaled": {"path": f"{ENVIRONMENT}.return"}}],
        **data,
        "tasks": source,
    }


_INSTEAD = {
    "tools": "it answers the policy's calls itself",
    "device": "no user acts in it",
    "user": "no user speaks in it",
    "simulator": "no user speaks in it",
}
