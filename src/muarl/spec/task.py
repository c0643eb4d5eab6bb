"""Tasks: what a user wants, and how it is known that she got it."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field

from muarl.spec.base import Id, Spec
from muarl.spec.calls import Who
from muarl.spec.predicate import PredicateSpec

Disclosure = Literal["volunteer", "on_request", "never"]


class FactSpec(Spec):
    """One entry of the user's fact ledger."""

    id: Id
    """Name that phrasings and questions use, `order_id`."""
    value: str
    """What the user says when she tells it."""
    disclose: Disclosure = "volunteer"
    """Told unasked, only when asked for, or never (the user then says she does not know)."""


class RequestSpec(Spec):
    """One thing the user asks for."""

    ask: Id
    """Intent; the phrasings under `ask:<intent>` word it."""
    facts: list[FactSpec] = []
    """What belongs to this request."""
    instead: RequestSpec | None = None
    """At the first confirmation question the user changes her mind to this."""


class UserGoalSpec(Spec):
    """The user's private goal, for scripted users."""

    requests: list[RequestSpec] = Field(min_length=1)
    """In the order she asks for them."""
    facts: list[FactSpec] = []
    """Facts that belong to her and not to one request."""


class GoldCallSpec(Spec):
    """One call of the reference solution."""

    tool: str
    """Tool name."""
    arguments: dict[str, Any] = {}
    """Its arguments."""
    by: Who = "agent"
    """Who makes it: the agent, or the user on her own device."""


class TaskSpec(Spec):
    """One task of a domain."""

    id: Id
    """Unique within the domain."""
    split: Id = "train"
    """Split it belongs to; no entity and no phrasing is shared between splits."""
    goal: str
    """The goal in words, for LLM users and for readers."""
    personas: list[Id] = Field(min_length=1)
    """Personas that can play this task; one is drawn per group."""
    user: UserGoalSpec | None = None
    """The goal as a ledger, for scripted users."""
    world: dict[str, Any] = {}
    """Merged over the domain's world before the dialogue."""
    gold: list[GoldCallSpec]
    """Calls that solve the task; empty where the right thing is to change nothing."""
    reward: list[PredicateSpec] | None = None
    """All must hold for reward 1; default: the domain's."""
    training_reward: list[PredicateSpec] | None = None
    """Counts instead while training; default: the domain's `training_reward`, else the reward."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored; default: the domain's."""

    @property
    def content_hash(self) -> str:
        """Hash of everything in the task."""
        return _hash(self.model_dump_json())

    @property
    def situation_hash(self) -> str:
        """Hash of what a dialogue is played on: same id, other text shows.

        Gold calls, reward and metrics are left out: they judge a dialogue, and may be mended after
        it.
        """
        return _hash(self.model_dump_json(exclude={"gold", "reward", "training_reward", "metrics"}))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class TasksFile(Spec):
    """A file of tasks."""

    version: Literal[1]
    """Version of this file's form."""
    domain: Id
    """Domain they belong to."""
    tasks: list[TaskSpec]
    """The tasks."""
