"""Run files: which domain, which engine, and how to roll out, train and evaluate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Id, OneOf, Spec
from muarl.spec.engine import EmbeddedSpec, EngineSpec
from muarl.spec.grpo import GrpoSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.perturb import PerturbSpec
from muarl.spec.training import CheckpointSpec
from muarl.spec.user import ScriptedUserSpec, UserKindSpec, UserSpec

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]

_LARGEST_TINY = 10**9
"""Four gigabytes of weights, and three times as much while they are trained."""


class TinyModelSpec(Spec):
    """A Qwen3 model made here, with a tokenizer trained on the domain's own text."""

    vocab_size: Annotated[int, Field(ge=300)] = 1024
    """Tokens, special ones included."""
    hidden_size: Positive = 128
    """Width."""
    num_layers: Positive = 3
    """Depth."""
    num_heads: Positive = 4
    """Attention heads."""
    num_kv_heads: Positive = 4
    """Key and value heads."""
    head_dim: Annotated[int, Field(gt=0, multiple_of=2)] = 32
    """Width of one head; even, since its halves are rotated against each other."""
    ffn_size: Positive = 384
    """Width of the feed-forward layers."""

    @model_validator(mode="after")
    def _can_be_built(self) -> TinyModelSpec:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads ({self.num_heads}) must be a multiple of num_kv_heads "
                f"({self.num_kv_heads})"
            )
        attention = 2 * self.head_dim * (self.num_heads + self.num_kv_heads)
        layer = self.hidden_size * (attention + 3 * self.ffn_size)
        size = self.vocab_size * self.hidden_size + self.num_layers * layer
        if size > _LARGEST_TINY:
            raise ValueError(
                f"a model of {size:.1e} weights is not tiny: at most {_LARGEST_TINY:.0e} are made "
                "here; make it smaller, or name a model's folder under `path`"
            )
        return self


class ModelSpec(OneOf):
    """The policy's model: one of these."""

    tiny: TinyModelSpec | None = None
    """Built and trained from nothing."""
    path: str | None = None
    """A folder in Hugging Face form (config, tokenizer, safetensors), relative to the run file."""


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

    group_size: Positive = 8
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


class ColdStartSpec(Spec):
    """Supervised start on expert dialogues that were verified by replay."""

    split: Id = "train"
    """Tasks the expert plays."""
    episodes: Positive = 4000
    """Expert dialogues."""
    imperfections: dict[str, Fraction] = {}
    """Name of a bad habit of the expert to its rate; the domain's expert says which it knows."""
    user: UserSpec = UserSpec(scripted=ScriptedUserSpec())
    """With whom the expert talks: left out, a scripted user without knobs, whoever plays the user
    afterwards. What no dialogue of the cold start shows, GRPO seldom finds."""
    steps: Positive | None = 700
    """Optimizer updates; null where `epochs` says how long."""
    epochs: PositiveFloat | None = None
    """How often each dialogue is learned from, in place of `steps`. What more epochs gain in loss they
    can cost in what reinforcement learning reaches: choose by the curve after it."""
    tokens_per_step: Positive | None = 1024
    """Dialogue tokens in one update, shared system prompt not counted; null where
    `dialogues_per_step` says how large."""
    dialogues_per_step: Positive | None = None
    """Dialogues in one update, in place of `tokens_per_step`."""
    optimizer: Literal["muon", "adamw"] = "muon"
    """`muon` for the body's matrices with AdamW for the rest, or AdamW for all."""
    lr: PositiveFloat = 1e-2
    """Peak learning rate."""
    warmup_steps: Annotated[int, Field(ge=0)] = 30
    """Updates over which the rate rises to its peak."""
    schedule: Literal["hold", "constant", "linear", "cosine"] = "hold"
    """What follows: `hold` keeps the peak and falls linearly to a twentieth over the last 30 %;
    `constant` keeps it; `linear` and `cosine` fall to nothing."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of AdamW."""
    held_out: Fraction = 0.0
    """Share of the tasks whose dialogues are not learned from; the loss on them is measured instead."""

    @model_validator(mode="after")
    def _says_each_once(self) -> ColdStartSpec:
        for one, other in (("steps", "epochs"), ("tokens_per_step", "dialogues_per_step")):
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                raise ValueError(
                    f"give either {one} or {other}, and null for the one that is not to count"
                )
        return self


class EvalSpec(Spec):
    """Held-out evaluation."""

    split: Id = "held_out"
    """Tasks to evaluate on."""
    episodes: Positive = 400
    """Dialogues per evaluation, one per task as far as tasks go."""
    temperatures: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)] = [1.0, 0.0]
    """One evaluation each; the first is the headline."""
    perturb: dict[Id, PerturbSpec] = {}
    """Name to perturbations: `muarl eval` plays the tasks once more under each of them, and sets
    success under it beside success without."""


class RunSpec(Spec):
    """One run."""

    version: Literal[1]
    """Version of this file's form."""
    domain: str
    """The domain's file, relative to this one."""
    seed: Seed = 0
    """Every random choice of the run follows from it."""
    engine: EngineSpec = EngineSpec(embedded=EmbeddedSpec())
    """What samples the policy: `embedded`, `vllm`, or `vllm_server` with its endpoints."""
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    """Torch threads; 0 takes all cores."""
    model: ModelSpec
    """The policy's model."""
    user: UserSpec = UserSpec(scripted=ScriptedUserSpec())
    """Who plays the user."""
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
    checkpoint: CheckpointSpec = CheckpointSpec()
    """How often that is saved which `--resume` goes on from, and how much of it stays."""

    @model_validator(mode="after")
    def _choices_are_made_elsewhere(self) -> RunSpec:
        chosen = None if self.grpo is None else self.grpo.validation
        if chosen is not None and chosen.split == self.eval.split:
            raise ValueError(
                f"grpo.validation and eval are both on split {chosen.split!r}: weights that were "
                "chosen on tasks look better on them than they are; choose on another split"
            )
        return self

    def users(self) -> Iterator[UserKindSpec]:
        """Whoever talks with the policy or with the expert, one of a pool at a time."""
        for user in (self.user, *([self.cold_start.user] if self.cold_start else ())):
            for _name, kind in user.users():
                yield kind

    def moved(self, old: Path, new: Path) -> RunSpec:
        """The same run in a file of another folder: paths that are relative to it follow.

        Args:
            old: The folder of the file that it was read from.
            new: The folder of the file that it is going to be written to.
        """
        model = self.model
        if model.path is not None:
            model = model.model_copy(update={"path": follow(model.path, old, new)})
        return self.model_copy(update={"domain": follow(self.domain, old, new), "model": model})


def follow(path: str, old: Path, new: Path) -> str:
    """A path relative to one folder, as it is relative to another; absolute ones stay."""
    return path if os.path.isabs(path) else os.path.relpath(old / path, new)


PATHS = (("domain",), ("model", "path"))
"""Fields that name a file or folder relative to the run file."""
