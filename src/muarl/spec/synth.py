"""Synthesis files: who makes dialogues of a domain, and what these have to stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from muarl.spec.base import Id, OneOf, Planned, Spec
from muarl.spec.chat_agent import LlmAgentSpec
from muarl.spec.engine import EmbeddedSpec, EngineSpec
from muarl.spec.grid import ExpertSpec
from muarl.spec.model import PolicyModelSpec, TinyModelSpec
from muarl.spec.run import EvalSpec, RolloutSpec, RunSpec, Seed, follow
from muarl.spec.select import SelectSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.spec.user_model import UserModelSpec
from muarl.spec.verify import VerifySpec


class AgentSpec(OneOf):
    """Who plays the agent: one of these."""

    expert: ExpertSpec | None = None
    """The domain's expert."""
    model: str | None = None
    """A run's folder or a model's, relative to this file, sampled by `engine`."""
    llm: LlmAgentSpec | None = None
    """An LLM."""


class SynthSpec(Spec):
    """Make dialogues of a domain, and keep those that are verified."""

    version: Literal[1]
    """Version of this file's form."""
    base: list[str] = []
    """Files that this one is laid over, the later over the earlier: synthesis files or parts of one, relative
    to this file. One that was read has none: it holds what they say."""
    domain: str
    """The domain's file, or a suite's, relative to this one."""
    agent: AgentSpec
    """Who plays the agent."""
    split: Id = "train"
    """Tasks to play."""
    dialogues: Planned = 400
    """How many are made; each task in turn, as often as it takes."""
    seed: Seed = 0
    """Every random choice follows from it."""
    engine: EngineSpec = EngineSpec(embedded=EmbeddedSpec())
    """What samples an agent who is a model of yours."""
    user: UserSpec = UserSpec(scripted=ScriptedUserSpec())
    """Who plays the user."""
    user_model: UserModelSpec | None = None
    """The model behind users of the kind `model`: a folder that training left."""
    rollout: RolloutSpec = RolloutSpec(max_tokens=1024, context_tokens=16_384, group_size=1)
    """Limits of a dialogue, and of what runs at once."""
    verify: VerifySpec = VerifySpec()
    """What a dialogue has to stand to be kept."""
    select: SelectSpec | None = None
    """Which of those that stand all are handed over; left out, all of them."""
    licence: Annotated[str, Field(min_length=1)] = "unstated"
    """Under what terms the dialogues may be used, in words or as an SPDX name; goes with each one."""

    def as_run(self, path: Path) -> RunSpec:
        """The run that plays these dialogues, in a file beside this one.

        Args:
            path: Of this file's folder.
        """
        model = PolicyModelSpec(tiny=TinyModelSpec())
        if self.agent.model is not None:
            model = PolicyModelSpec(path=_model_in(path, self.agent.model))
        return RunSpec(
            version=1,
            domain=self.domain,
            seed=self.seed,
            engine=self.engine,
            model=model,
            user=self.user,
            user_model=self.user_model,
            rollout=self.rollout,
            eval=EvalSpec(split=self.split, episodes=self.dialogues),
        )

    def moved(self, old: Path, new: Path) -> SynthSpec:
        """The same synthesis in a file of another folder; see `RunSpec.moved`."""
        agent = self.agent
        if agent.model is not None:
            agent = agent.model_copy(update={"model": follow(agent.model, old, new)})
        run = self.as_run(old).moved(old, new)
        return self.model_copy(
            update={"domain": run.domain, "user_model": run.user_model, "agent": agent}
        )


PATHS = (("domain",), ("agent", "model"), ("user_model", "model", "path"))
"""Fields that name a file or folder relative to the synthesis file."""


def _model_in(folder: Path, named: str) -> str:
    """A run's folder has its model one below."""
    return f"{named}/model" if (folder / named / "model").is_dir() else named
