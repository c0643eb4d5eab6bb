"""Run files: which domain, which engine, and how to roll out, train and evaluate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator

from muarl.spec.base import Fraction, Id, Planned, PythonAnywhere, Spec
from muarl.spec.engine import EmbeddedSpec, EngineSpec
from muarl.spec.grpo import GrpoSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.model import ColdStartSpec, ModelSpec, PolicyModelSpec
from muarl.spec.perturb import PerturbSpec
from muarl.spec.sinks import SinkSpec
from muarl.spec.training import CheckpointSpec
from muarl.spec.user import ScriptedUserSpec, UserKindSpec, UserSpec
from muarl.spec.user_model import UserModelSpec

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
AnyModel = TypeVar("AnyModel", bound=ModelSpec)
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _all_of_it(share: float) -> float:
    if share != 1:
        raise ValueError(
            f"only 1 goes, got {share:g}: an update needs the probability of a token among all others. "
            "Leave it out, or lower the temperature"
        )
    return share


class AtOnceSpec(Spec):
    """How many of a kind may go on at once, over all dialogues; those beyond wait, task by task."""

    messages: Positive | None = None
    """Policy messages being sampled. Left out: no limit of ours, since admission follows the
    engine's own queue and memory."""
    replies: Positive | None = 256
    """Messages of an LLM user being written; null lifts the limit."""
    calls: Positive | None = 256
    """Calls the tool server is answering; null lifts the limit."""
    sessions: Positive | None = None
    """Sessions with the tool server. A dialogue has one from first to last, so no more dialogues are
    begun than may have one. Left out: 32 where a session is a process of its own (`tools.command`),
    no limit in memory."""


class RolloutSpec(Spec):
    """Limits of a dialogue and of what runs at once."""

    loop: PythonAnywhere | None = None
    """An agent's own loop, which leads every dialogue: `agent.py:agent`, an async function of a context in a
    file relative to this one. Left out: muarl's own loop."""
    group_size: Planned = 8
    """Episodes of one task that share a baseline."""
    vary: Literal["persona", "seed", "nothing"] = "seed"
    """What differs between the users of a group: who she is (`persona`, and with it all she says),
    how she says and does it (`seed`), or nothing, so that only the policy's draws do."""
    perturb: PerturbSpec = PerturbSpec()
    """How often users and tools are perturbed, in the dialogues that train and in those of `muarl
    rollout`; neither in a cold start nor in an evaluation (`eval.perturb`)."""
    concurrency: Positive = 256
    """Dialogues alive at once, at most; fewer where the policy's engine has no room for more."""
    at_once: AtOnceSpec = AtOnceSpec()
    """Limits of what dialogues share."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of the policy while training; 0 is greedy."""
    top_p: Annotated[float, AfterValidator(_all_of_it), WithJsonSchema({"const": 1})] = 1.0
    """Share of the distribution that is sampled from: all of it, whatever the engine. Nothing else goes:
    an update weighs a token by its probability among all others, which a cut-off tail would change."""
    max_turns: Positive = 24
    """Policy messages in a dialogue; one more is truncation."""
    max_tokens: Positive = 64
    """Tokens in one policy message; reaching the cap ends the dialogue as truncated."""
    context_tokens: Positive = 1024
    """Tokens in the whole dialogue; a longer one is truncated."""
    deadline_s: PositiveFloat = 120.0
    """Seconds a dialogue may take; longer is an infrastructure fault."""
    message_s: PositiveFloat = 60.0
    """Seconds one policy message may take, once it may be sampled; longer is a fault as well."""
    reply_s: PositiveFloat = 120.0
    """Seconds one message of the user may take; longer is a fault as well. (Starting the tool
    server and calling it have limits in the domain: `tools.start_timeout_s`, `call_timeout_s`.)"""
    attempts: Positive = 3
    """How often a dialogue that ended in a fault is tried. It is not tried again once it changed
    something outside its own world (see the domain's `tools.external`)."""
    retry_wait_s: Annotated[float, Field(ge=0)] = 0.5
    """Seconds before the second attempt; doubled for each further one, up to 30, and spread."""
    max_fault_rate: Fraction = 0.2
    """Share of faulty dialogues (of the last 64 or more) at which the run stops."""


Trials = Annotated[int, Field(ge=1, le=10_000)]
"""Dialogues on one task: more would say nothing more of it, and all are planned before the first."""


class EvalSpec(Spec):
    """Held-out evaluation."""

    split: Id = "held_out"
    """Tasks to evaluate on."""
    episodes: Planned = 400
    """Dialogues per evaluation: one of each task, and then a further one."""
    trials: Trials = 1
    """How often each of these is played, with draws of its own; success is the mean over all, and pass^k is
    known up to so many."""
    temperatures: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)] = [1.0, 0.0]
    """One evaluation each; the first is the headline."""
    user: UserSpec | None = None
    """Who plays the user; left out, who plays her in training. Where the user is trained herself, it
    must be another: else what is measured by changes on the way."""
    perturb: dict[Id, PerturbSpec] = {}
    """Name to perturbations: `muarl eval` plays the tasks once more under each of them, and sets
    success under it beside success without."""

    @property
    def dialogues(self) -> int:
        """Of one evaluation."""
        return self.episodes * self.trials


class OverlapSpec(Spec):
    """What training must not overlap with. Tasks that are evaluated are always looked at (law L10)."""

    against: dict[Id, str] = {}
    """Name to a set that is to stay unseen: a domain, a file of tasks, a run's folder, or a `.jsonl`,
    `.json`, `.parquet` or text file, relative to this file; `PATH:SPLIT` is one split of a domain."""
    accepted: Annotated[str, Field(min_length=1)] | None = None
    """Why the run trains although it overlaps; the report prints it beside what is shared. Left out,
    such a run is refused."""


class RunSpec(Spec):
    """One run."""

    version: Literal[1]
    """Version of this file's form."""
    base: list[str] = []
    """Files that this one is laid over, the later over the earlier: run files, parts of one, or
    `preset:NAME`, relative to this file. A run that was read has none: it holds what they say."""
    domain: str
    """The domain's file, or a suite's, relative to this one."""
    seed: Seed = 0
    """Every random choice of the run follows from it."""
    engine: EngineSpec = EngineSpec(embedded=EmbeddedSpec())
    """What samples the policy: `embedded`, `vllm`, or `vllm_server` with its endpoints."""
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    """Torch threads; 0 takes all cores."""
    model: PolicyModelSpec
    """The policy's model."""
    user: UserSpec = UserSpec(scripted=ScriptedUserSpec())
    """Who plays the user."""
    user_model: UserModelSpec | None = None
    """The model behind users of the kind `model`, and how it is trained."""
    rollout: RolloutSpec = RolloutSpec()
    """Limits."""
    cold_start: ColdStartSpec | None = None
    """Left out: start from the model as it is."""
    grpo: GrpoSpec | None = None
    """Left out: no reinforcement learning."""
    kernel: KernelSpec = KernelSpec()
    """How updates are computed."""
    eval: EvalSpec = EvalSpec()
    """Held-out evaluation, before and after."""
    overlap: OverlapSpec = OverlapSpec()
    """What training must not overlap with, and why it does all the same."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """How often that is saved which `--resume` goes on from, and how much of it stays."""
    sinks: list[SinkSpec] = []
    """Where figures go beside the run's folder: `tensorboard`, `wandb`, `trackio`."""

    @field_validator("sinks")
    @classmethod
    def _each_once(cls, sinks: list[SinkSpec]) -> list[SinkSpec]:
        names = [sink.name for sink in sinks]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice")
        return sinks

    @property
    def eval_user(self) -> UserSpec:
        """Who plays the user in evaluations."""
        return self.user if self.eval.user is None else self.eval.user

    def trained_on(self) -> list[tuple[tuple[str, ...], ColdStartSpec | GrpoSpec]]:
        """Parts that train on a split, with where they stand."""
        hers = None if self.user_model is None else self.user_model.cold_start
        parts = (
            (("cold_start",), self.cold_start),
            (("user_model", "cold_start"), hers),
            (("grpo",), self.grpo),
        )
        return [(loc, part) for loc, part in parts if part is not None]

    def users(self) -> Iterator[UserKindSpec]:
        """Whoever talks with the policy or with the expert, one of a pool at a time."""
        starts = (part for _, part in self.trained_on() if isinstance(part, ColdStartSpec))
        for user in (self.user, self.eval_user, *(start.user for start in starts)):
            for _name, kind in user.users():
                yield kind

    def moved(self, old: Path, new: Path) -> RunSpec:
        """The same run in a file of another folder: paths that are relative to it follow.

        Args:
            old: The folder of the file that it was read from.
            new: The folder of the file that it is going to be written to.
        """
        hers = self.user_model
        if hers is not None:
            hers = hers.model_copy(update={"model": _moved(hers.model, old, new)})
        start = self.cold_start
        if start is not None and start.file is not None:
            start = start.model_copy(update={"file": follow(start.file, old, new)})
        against = {name: follow(path, old, new) for name, path in self.overlap.against.items()}
        rollout = self.rollout
        if rollout.loop is not None:
            rollout = rollout.model_copy(update={"loop": follow(rollout.loop, old, new)})
        update = {
            "cold_start": start,
            "domain": follow(self.domain, old, new),
            "overlap": self.overlap.model_copy(update={"against": against}),
            "model": _moved(self.model, old, new),
            "rollout": rollout,
            "user_model": hers,
        }
        return self.model_copy(update=update)


def follow(path: str, old: Path, new: Path) -> str:
    """A path relative to one folder, as it is relative to another; absolute ones stay."""
    return path if os.path.isabs(path) else os.path.relpath(old / path, new)


def _moved(model: AnyModel, old: Path, new: Path) -> AnyModel:
    if model.path is None:
        return model
    return model.model_copy(update={"path": follow(model.path, old, new)})


PATHS = (
    ("domain",),
    ("model", "path"),
    ("user_model", "model", "path"),
    ("cold_start", "file"),
    ("rollout", "loop"),
    ("overlap", "against", "*"),
)
"""Fields that name a file or folder relative to the run file; `*` is any key."""
