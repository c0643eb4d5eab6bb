"""Grid files: several policies under several users, and what of a training's gain is left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from muarl.spec.base import Fraction, Id, OneOf, Planned, Spec
from muarl.spec.chat_agent import ChatPolicySpec
from muarl.spec.plugged import PluggedPolicy
from muarl.spec.run import Seed, Trials, follow
from muarl.spec.user import UserSpec

_PHASE = "grid"


class ExpertSpec(Spec):
    """The domain's expert."""

    imperfections: dict[str, Fraction] = {}
    """Name of a bad habit of the expert to its rate; the domain's expert says which it knows."""


class GridPolicySpec(OneOf):
    """A policy of a grid: one of these."""

    model: str | None = None
    """A run's folder, or a model's, relative to the grid's file."""
    cold_start: str | None = None
    """A run's folder, relative to the grid's file: the weights that its GRPO began with."""
    expert: ExpertSpec | None = None
    """The domain's expert."""
    chat: ChatPolicySpec | None = None
    """A model behind an OpenAI-compatible chat endpoint, with its own tool calls."""
    trivial: Id | None = None
    """A policy without skill, such as `do_nothing`; `muarl check` names all of a domain's."""
    plugin: PluggedPolicy | None = None
    """One of an installed package: `{name: options}`; see docs/plugins.md."""

    def folder(self, seed: int = 0) -> str | None:
        """The folder that holds the weights, if it has any; `seed` stands where its path has `{seed}`."""
        path = f"{self.cold_start}/cold_start" if self.cold_start is not None else self.model
        return None if path is None else path.replace("{seed}", str(seed))

    @property
    def of_each_seed(self) -> bool:
        """Each seed has weights of its own."""
        return self.folder(0) != self.folder(1)


class GainSpec(Spec):
    """Whose gain is looked for, and under whom it was made."""

    cold: Id
    """The policy that training began with."""
    trained: Id
    """The policy that came of it."""
    user: Id
    """The user that it was trained with."""
    least: Fraction = 0.8
    """Share of the gain that has to be kept under each other user."""


def grid_phase(policy: str, user: str) -> str:
    """The phase of a grid's episodes by one policy with one user."""
    return f"{_PHASE}:{policy}:{user}"


def sides_of(phase: str) -> tuple[str, str] | None:
    """Policy and user of a grid's phase; None for any other phase.

    Example:
        >>> sides_of("grid:cold:practised"), sides_of("train")
        (('cold', 'practised'), None)
    """
    match phase.split(":"):
        case [str(kind), policy, user] if kind == _PHASE:
            return policy, user
    return None


class GridSpec(Spec):
    """Every policy under every user, on the same tasks."""

    version: Literal[1]
    """Version of this file's form."""
    run: str
    """The run file, relative to this one: domain, engine, limits, and what must not be evaluated on
    because it was trained on."""
    policies: Annotated[dict[Id, GridPolicySpec], Field(min_length=1)]
    """Name to policy. What the others are compared with is the gain's `cold`, or the first."""
    users: Annotated[dict[Id, UserSpec], Field(min_length=1)]
    """Name to user. What the others are compared with is the gain's `user`, or the first."""
    gain: GainSpec | None = None
    """Left out: no share of a gain is told."""
    split: Id | None = None
    """Tasks to play; left out, those that the run evaluates."""
    tasks: Planned = 100
    """How many of them, from the first."""
    trials: Trials = 4
    """Dialogues of one policy with one user on one task; pass^k is known up to k of them."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of policies that are models."""
    seed: Seed = 0
    """Every random choice follows from it. All policies meet a user with the same draws."""
    seeds: Annotated[list[Seed], Field(min_length=1)] | None = None
    """Play the whole grid with each of these in place of `seed`, and tell success by seed, too. In the path
    of a policy `{seed}` stands for it, so that a training that was carried out with several seeds is one
    policy. What else is told of a cell is over all its dialogues."""

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[Seed] | None) -> list[Seed] | None:
        if seeds is not None and len(set(seeds)) < len(seeds):
            raise ValueError("a seed is named twice")
        return seeds

    @property
    def every_seed(self) -> list[int]:
        """Those that the grid is played with."""
        return [self.seed] if self.seeds is None else self.seeds

    @property
    def first_policy(self) -> str:
        """Whom the other policies are compared with."""
        return next(iter(self.policies)) if self.gain is None else self.gain.cold

    @property
    def first_user(self) -> str:
        """Whom the other users are compared with."""
        return next(iter(self.users)) if self.gain is None else self.gain.user

    def moved(self, old: Path, new: Path) -> GridSpec:
        """The same grid in a file of another folder; see `RunSpec.moved`."""
        policies = {
            name: policy.model_copy(
                update={
                    key: follow(path, old, new)
                    for key in ("model", "cold_start")
                    if (path := getattr(policy, key)) is not None
                }
            )
            for name, policy in self.policies.items()
        }
        run = follow(self.run, old, new)
        return self.model_copy(update={"run": run, "policies": policies})
