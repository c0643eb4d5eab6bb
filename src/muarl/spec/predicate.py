"""Predicates: what a reward or metric checks, as data.

Each predicate is a mapping with one key. Evaluation lives in `muarl.reward`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from muarl.spec.base import Spec


class WorldAt(Spec):
    """The final world's value at a path."""

    path: str
    """Dotted path into the world, `orders.K41.status`."""
    equals: Any
    """The value it must have; `3` equals `3.0`."""


class Called(Spec):
    """A tool was called without an error."""

    tool: str
    """Tool name."""
    arguments: dict[str, Any] = {}
    """Arguments the call must have had, among others."""
    before: str | None = None
    """A tool whose first call must come later, if it is called at all."""


class NeverCalled(Spec):
    """A tool was never called, not even with an error."""

    tool: str
    """Tool name."""


class Said(Spec):
    """Some policy message to the user contains a text (case and spacing ignored)."""

    text: str
    """Text to look for."""


class Confirmed(Spec):
    """Share of successful write calls that directly follow a confirmation by the user.

    Needs a user whose replies carry acts. Applies only where a write was made.
    """

    tools: list[str] | None = None
    """Write tools to look at; default: the domain's `writes`."""


class PredicateSpec(Spec):
    """Exactly one of these keys."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    gold_world: bool | None = None
    """The final world equals the world after the task's gold calls."""
    world: WorldAt | None = None
    """The value at a path of the final world."""
    called: Called | None = None
    """A tool was called successfully."""
    never_called: NeverCalled | None = None
    """A tool was never called."""
    said: Said | None = None
    """The policy said something to the user."""
    never_said: Said | None = None
    """The policy never said something to the user."""
    confirmed: Confirmed | None = None
    """Share of writes that the user confirmed."""

    @model_validator(mode="after")
    def _exactly_one(self) -> PredicateSpec:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            choices = ", ".join(type(self).model_fields)
            raise ValueError(f"give exactly one of {choices}; got {', '.join(given) or 'none'}")
        return self

    @property
    def kind(self) -> str:
        """The one key that is set."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def name(self) -> str:
        """Short name for reports: the key and what tells it apart."""
        value = getattr(self, self.kind)
        if isinstance(value, WorldAt):
            return f"world {value.path}"
        if isinstance(value, (Called, NeverCalled)):
            return f"{self.kind} {value.tool}"
        if isinstance(value, Said):
            return f"{self.kind} {value.text!r}"
        return self.kind


class RewardFile(Spec):
    """A file of predicates, to score stored episodes by: `muarl score --reward`."""

    version: Literal[1]
    """Version of this file's form."""
    reward: list[PredicateSpec] = Field(min_length=1)
    """All must hold for reward 1; stand in for the domain's and for those of every task."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored; default: those of the task, or of the domain."""
