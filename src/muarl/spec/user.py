"""Who plays the user in a run."""

from __future__ import annotations

import random
from typing import Annotated

from pydantic import Field, model_validator

from muarl.spec.base import EndpointUrl, Id, Spec
from muarl.spec.knobs import KnobsSpec

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


class ScriptedUserSpec(Spec):
    """The domain's scripted user."""

    knobs: KnobsSpec = KnobsSpec()
    """Behaviours, whatever the persona says of the same ones."""


class LlmUserSpec(Spec):
    """A user played by an LLM behind an OpenAI-compatible chat endpoint."""

    base_url: EndpointUrl
    """Endpoint, `http://127.0.0.1:8000/v1`."""
    model: str
    """Model name sent to the endpoint."""
    api_key_env: str | None = None
    """Environment variable that holds the key; the key itself is never written anywhere."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of the user."""
    max_tokens: Positive = 256
    """Cap on one user message."""
    timeout_s: PositiveFloat = 60.0
    """Seconds one reply may take."""


class UserKindSpec(Spec):
    """One user: one of these."""

    scripted: ScriptedUserSpec | None = None
    """The domain's scripted user."""
    llm: LlmUserSpec | None = None
    """An LLM."""

    @model_validator(mode="after")
    def _one_kind(self) -> UserKindSpec:
        kinds = [name for name in type(self).model_fields if name not in _NO_KINDS]
        if sum(getattr(self, name) is not None for name in kinds) != 1:
            raise ValueError(f"give exactly one of {' and '.join(kinds)}")
        return self


class PooledUserSpec(UserKindSpec):
    """One of several users."""

    name: Id
    """What episodes and summaries call her."""
    weight: PositiveFloat = 1.0
    """Share among the pool's users."""


_NO_KINDS = ("name", "weight")


class UserSpec(UserKindSpec):
    """Who plays the user: one kind, or a pool of several of which each dialogue draws one."""

    pool: Annotated[list[PooledUserSpec], Field(min_length=1)] | None = None
    """Users of whom one is drawn, by weight; `rollout.vary` says whether a group shares her."""

    @model_validator(mode="after")
    def _distinct_names(self) -> UserSpec:
        names = [user.name for user in self.pool or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two users of the pool are named {name!r}")
        return self

    def users(self) -> list[tuple[str, UserKindSpec]]:
        """Name and spec of each that may be drawn; the only one has no name."""
        return [(user.name, user) for user in self.pool] if self.pool else [("", self)]

    def draw(self, rng: random.Random) -> tuple[str, UserKindSpec]:
        """One of them, by weight; where there is one, nothing is drawn."""
        if self.pool is None:
            return "", self
        return rng.choices(self.users(), [user.weight for user in self.pool])[0]
