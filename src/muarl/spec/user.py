"""Who plays the user in a run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from muarl.spec.base import LARGEST_WEIGHT, EnvName, Id, OneOf, Spec
from muarl.spec.knobs import KnobsSpec
from muarl.spec.plugged import PluggedUser
from muarl.spec.simulator import Strategy
from muarl.spec.task import TaskSpec
from muarl.spec.url import EndpointUrl

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


class ScriptedUserSpec(Spec):
    """The domain's scripted user."""

    knobs: KnobsSpec = KnobsSpec()
    """Behaviours, whatever the persona says of the same ones."""


_CHARS_PER_TOKEN = 32
"""More than any text has on average; tokens have 4."""

GuardName = Literal[
    "role_flip",
    "leak",
    "premature_disclosure",
    "invented_fact",
    "forbidden",
    "unexecuted_action",
    "change_of_mind",
    "early_stop",
    "late_stop",
]
"""What a guard looks for in what an LLM user is about to say; see `muarl.user.guards`."""

GUARD_NAMES: tuple[GuardName, ...] = get_args(GuardName)


class SpokenUserSpec(Spec):
    """What holds for any user whose messages a model samples."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of the user."""
    max_tokens: Positive = 256
    """Cap on one user message."""
    candidates: Annotated[int, Field(ge=1, le=16)] = 1
    """Messages she is asked for at once, each with how likely it is; one of them is drawn. One that
    is asked for alone is nearly always the same."""
    draw: Literal["probability", "uniform"] = "probability"
    """How one of the candidates is drawn."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """How often a message that breaks her contract is sampled; after that it is a user fault."""
    guards: list[GuardName] = list(GUARD_NAMES)
    """What of her contract her messages are held to; each is a deterministic check."""
    tool_rounds: Positive = 8
    """Where she has a device: answers in a row in which she may call tools before she must speak."""
    knobs: KnobsSpec = KnobsSpec()
    """Behaviours she is steered to, whatever the persona says of the same ones."""

    @property
    def max_chars(self) -> int:
        """Characters of an answer, at most: one that is longer is of a server that heeds no cap."""
        return _CHARS_PER_TOKEN * self.max_tokens * self.candidates


class LlmUserSpec(SpokenUserSpec):
    """A user played by an LLM behind an OpenAI-compatible chat endpoint."""

    base_url: EndpointUrl
    """Endpoint, `http://127.0.0.1:8000/v1`."""
    model: Annotated[str, Field(min_length=1)]
    """Model name sent to the endpoint."""
    api_key_env: EnvName | None = None
    """Environment variable that holds the key; the key itself is never written anywhere."""
    timeout_s: PositiveFloat = 60.0
    """Seconds one reply may take."""


class ModelUserSpec(SpokenUserSpec):
    """A user played by the run's `user_model`, which is sampled here and can be trained."""


class WordedUserSpec(Spec):
    """A scripted user decides what is done and told; an LLM words it, and a guard compares."""

    llm: LlmUserSpec
    """Who words it. Its `guards` are not asked: what may be told is decided before."""
    knobs: KnobsSpec = KnobsSpec()
    """As those of a scripted user."""


class SimulatorUserSpec(Spec):
    """An LLM in the domain's own words, as its `simulator` has them. She is held to no contract."""

    llm: LlmUserSpec
    """Who she is. Its `guards`, `knobs` and `candidates` are not asked for; `tries` is how often an
    empty message is sampled."""
    strategy: Strategy = "llm"
    """`llm`: she just speaks. `react`: she thinks first. `verify`: a message that a supervisor does
    not pass is sampled again. `reflection`: such a message is thought over."""
    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """For `verify` and `reflection`: messages that are looked at; after the last one, `verify` says that
    and `reflection` the first."""


class FixedUserSpec(Spec):
    """A user who says the task's `turns`, one after the other, whatever the agent answers."""


class ReplayUserSpec(Spec):
    """A user who says what somebody said in a recorded dialogue of the same task."""

    file: str
    """Dialogues in JSON lines, relative to the domain's file; of several of a task one is drawn."""


class TellerUserSpec(Spec):
    """A user without a model or a script: she tells her whole goal at once, word by word, and goes.

    For trying out a domain that only LLMs can be the user of; she is no measure of a policy.
    """

    answers: Annotated[int, Field(ge=0, le=100)] = 0
    """Messages that she answers with a request to go on, whatever they say; at the next one she
    leaves."""


class UserKindSpec(OneOf):
    """One user: one of these."""

    scripted: ScriptedUserSpec | None = None
    """The domain's scripted user."""
    llm: LlmUserSpec | None = None
    """An LLM."""
    model: ModelUserSpec | None = None
    """The run's `user_model`, which can be trained."""
    worded: WordedUserSpec | None = None
    """The domain's scripted user, in the words of an LLM."""
    simulator: SimulatorUserSpec | None = None
    """An LLM in the words of the domain's `simulator`."""
    replay: ReplayUserSpec | None = None
    """What people said in dialogues that were recorded."""
    fixed: FixedUserSpec | None = None
    """The task's `turns`, as they stand."""
    teller: TellerUserSpec | None = None
    """One who tells the task's goal, and goes."""
    plugin: PluggedUser | None = None
    """One of an installed package: `{name: options}`; see docs/plugins.md."""


class PooledUserSpec(Spec):
    """One of several users."""

    weight: Annotated[float, Field(gt=0, le=LARGEST_WEIGHT)] = 1.0
    """How often she is drawn, beside the others: 2 is twice as often as 1."""
    user: UserKindSpec
    """Who she is."""


class UserSpec(UserKindSpec):
    """Who plays the user: one of these, or a pool of several of which each dialogue draws one."""

    pool: Annotated[dict[Id, PooledUserSpec], Field(min_length=1)] | None = None
    """Name to user, as episodes and summaries call her; `rollout.vary` says whether a group shares
    her."""

    def users(self) -> list[tuple[str, UserKindSpec]]:
        """Name and spec of each that may be drawn; the only one has no name."""
        if self.pool is None:
            return [("", self)]
        return [(name, pooled.user) for name, pooled in self.pool.items()]

    def models(self) -> list[ModelUserSpec]:
        """Those of them that are models sampled here."""
        return [user.model for _, user in self.users() if user.model is not None]

    def draw(self, rng: random.Random) -> tuple[str, UserKindSpec]:
        """One of them, by weight; where there is one, nothing is drawn."""
        if self.pool is None:
            return "", self
        return rng.choices(self.users(), [pooled.weight for pooled in self.pool.values()])[0]


def modelless_user(tasks: Sequence[TaskSpec]) -> UserSpec:
    """Who plays the user of tasks where there is no model: where all have fixed messages, those."""
    if tasks and all(task.turns for task in tasks):
        return UserSpec(fixed=FixedUserSpec())
    return UserSpec(scripted=ScriptedUserSpec())
