"""A model of a run: where it is from, and its supervised start."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from muarl.spec.base import Fraction, Id, OneOf, Planned, Spec
from muarl.spec.lora import LoraSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.spec.verify import VerifySpec

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]

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
    """A model: one of these."""

    tiny: TinyModelSpec | None = None
    """Built and trained from nothing."""
    path: str | None = None
    """A folder in Hugging Face form (config, tokenizer, safetensors), relative to the run file."""


Device = Literal["auto", "cpu", "cuda"]


def _one_source(max_properties: int) -> ConfigDict:
    """What the schema says of a model with keys beside the one that says where it is from."""
    return ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "maxProperties": max_properties,
            "oneOf": [{"required": ["tiny"]}, {"required": ["path"]}],
        }
    )


class TrainedModelSpec(ModelSpec):
    """A model that is trained: `tiny` or `path`, and what of it is trained."""

    model_config = _one_source(2)
    beside = frozenset({"lora"})

    lora: LoraSpec | None = None
    """Train adapters beside the weights, and leave those as they are. Left out, all weights are
    trained."""


class PolicyModelSpec(TrainedModelSpec):
    """The policy's model: `tiny` or `path`, what of it is trained, and where."""

    model_config = _one_source(3)
    beside = frozenset({"lora", "device"})

    device: Device = "auto"
    """Where the model is trained, and where the embedded engine samples from it; likewise the model of
    users. `auto`: on the GPU of this process (of several on one machine each has its own), or on the CPU
    where there is none."""


class ColdStartSpec(Spec):
    """Supervised start on expert dialogues that were verified by replay."""

    split: Id = "train"
    """Tasks the expert plays."""
    episodes: Planned = 4000
    """Expert dialogues."""
    imperfections: dict[str, Fraction] = {}
    """Name of a bad habit of the expert to its rate; the domain's expert says which it knows."""
    user: UserSpec = UserSpec(scripted=ScriptedUserSpec())
    """With whom the expert talks: left out, a scripted user without knobs, whoever plays the user
    afterwards. What no dialogue of the cold start shows, GRPO seldom finds."""
    file: str | None = None
    """Chat dialogues in JSON lines, relative to the run file, such as `muarl export --what dialogues`
    writes: imitated instead of the expert's, the first `episodes` of them."""
    verify: VerifySpec = VerifySpec.only_true()
    """What a dialogue has to stand to be imitated. Left out, that it replays: one that earned nothing
    by a bad habit is imitated too. See docs/synthesis.md."""
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
    warmup_steps: Annotated[int, Field(ge=0)] | None = None
    """Updates over which the rate rises to its peak, at most all of them. Left out: 30, or all if there
    are fewer."""
    schedule: Literal["hold", "constant", "linear", "cosine"] = "hold"
    """What follows: `hold` keeps the peak and falls linearly to a twentieth over the last 30 %;
    `constant` keeps it; `linear` and `cosine` fall to nothing."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of AdamW."""
    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the tasks whose dialogues are not learned from; the loss on them is measured instead."""

    @model_validator(mode="after")
    def _says_each_once(self) -> ColdStartSpec:
        for one, other in (("steps", "epochs"), ("tokens_per_step", "dialogues_per_step")):
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                raise ValueError(
                    f"give either {one} or {other}, and null for the one that is not to count"
                )
        return self
