"""The model that plays users of the kind `model`, and how it is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Spec
from muarl.spec.engine import EmbeddedSpec, EngineSpec
from muarl.spec.grpo import UpdateSpec
from muarl.spec.model import ColdStartSpec, TrainedModelSpec

Positive = Annotated[int, Field(gt=0)]


class UserGrpoSpec(UpdateSpec):
    """GRPO of the user on the rounds of the policy's, for groups that split evenly.

    Her reward is the same for all dialogues of a group, so `baseline` is over the whole round.
    """

    turns: Literal["together", "alternately"] = "together"
    """Whether both learn from each round, or the policy from the first, the user from the second, and
    so on."""
    kl_in: Literal["loss"] = "loss"
    """A term of the loss."""


class PastUsersSpec(Spec):
    """Past users, whom the policy goes on meeting."""

    size: Positive = 5
    """How many; the oldest leaves first."""
    every: Positive = 4
    """Iterations from one to the next."""


class UserModelSpec(Spec):
    """The model that plays users of the kind `model`, and how it is trained."""

    model: TrainedModelSpec
    """Where it is from, and what of it is trained."""
    engine: EngineSpec = EngineSpec(embedded=EmbeddedSpec())
    """What samples it, as the run's `engine` does the policy."""
    context_tokens: Positive = 1024
    """Tokens of her side of a dialogue, her role included; used up, it is a user fault."""
    cold_start: ColdStartSpec | None = None
    """Supervised start: expert dialogues the other way round, the scripted user's messages being
    what she learns to say. Left out: start from the model as it is."""
    grpo: UserGrpoSpec | None = None
    """Left out: she stays as she is while the policy learns."""
    past: PastUsersSpec | None = None
    """Each dialogue of the training draws the present user or one of these, evenly. Left out: only
    the present one."""

    @model_validator(mode="after")
    def _fits_together(self) -> UserModelSpec:
        if self.past is not None and self.grpo is None:
            raise ValueError("past goes with grpo: without it there is only one user")
        if self.past is not None and self.engine.embedded is None:
            raise ValueError("past goes with engine: embedded; each past user needs one of her own")
        return self
