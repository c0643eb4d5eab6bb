"""How a policy learns from its rewards: one choice for each independent piece of the algorithm.

| piece                     | keys                                                     |
|---------------------------|----------------------------------------------------------|
| baseline                  | `baseline`                                               |
| level of the ratio        | `ratio`                                                  |
| clip                      | `clip_low`, `clip_high`, `dual_clip`, `surrogate`        |
| aggregation               | `aggregation`, `aggregation_tokens`                      |
| divergence, entropy       | `kl_coef`, `kl_estimator`, `kl_in`, `kl_max`, `entropy_coef` |
| sampler against trainer   | `correction`                                             |
| what is sampled and kept  | `dynamic_sampling`, `overlong`, `drop`                   |
| how far sampling is ahead | `mode`                                                   |
| credit of turns           | `credit`, `shuffled_credit`                              |
| which tasks are played    | `curriculum`                                             |
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Id, Spec
from muarl.spec.credit import CreditSpec, OutcomeCredit
from muarl.spec.curriculum import CurriculumSpec
from muarl.spec.training import ModeSpec, OnPolicySpec, ValidationSpec

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]

Baseline = Literal["std", "population_std", "mean", "leave_one_out", "none"]
"""What is taken from a reward, and what it is divided by."""


class CorrectionSpec(Spec):
    """Importance correction where the sampler's log-probs are not quite the trainer's.

    With w = probability under the trainer's weights at the start of the iteration over the
    sampler's. Weighting and rejecting are apart: either may be left out.
    """

    level: Literal["token", "sequence", "geometric"] = "token"
    """Of w: each token's own, the product over a sample, or its geometric mean over a sample."""
    truncate: PositiveFloat | None = 2.0
    """Losses are weighted by w, up to this (TIS); null weights nothing."""
    reject_above: PositiveFloat | None = None
    """What has a greater w is left out of loss and denominator alike (MIS)."""
    reject_below: PositiveFloat | None = None
    """What has a smaller w is left out likewise."""

    @model_validator(mode="after")
    def _does_something(self) -> CorrectionSpec:
        if self.truncate is None and self.reject_above is None and self.reject_below is None:
            raise ValueError(
                "give truncate, reject_above or reject_below; else it corrects nothing"
            )
        if not (self.reject_below or 0.0) < 1.0 < (self.reject_above or float("inf")):
            raise ValueError(
                "reject_below must be less than 1 and reject_above more, for w is 1 where sampler and "
                "trainer agree: else just that would be rejected"
            )
        return self


class DynamicSamplingSpec(Spec):
    """Roll out further tasks in place of groups in which all earned the same (DAPO)."""

    max_rounds: Positive = 3
    """Rounds of rollouts in one iteration, at most; then it learns from the groups that it has, and
    says so."""


class OverlongSpec(Spec):
    """Punish episodes that come near the cap of what may be sampled (DAPO, equation 13).

    Nothing up to `max_tokens - buffer_tokens` sampled tokens, 1 from `max_tokens` on, linear between.
    """

    max_tokens: Positive
    """Sampled tokens of an episode at which the punishment is whole."""
    buffer_tokens: Positive
    """It begins so many tokens earlier."""
    penalty: PositiveFloat = 1.0
    """The whole punishment, taken from the reward."""

    @model_validator(mode="after")
    def _begins_within(self) -> OverlongSpec:
        if self.buffer_tokens > self.max_tokens:
            raise ValueError("buffer_tokens must not be more than max_tokens")
        return self


class UpdateSpec(Spec):
    """How one model is updated on the dialogues of a round."""

    updates_per_iteration: Positive = 2
    """Optimizer updates on each round's episodes."""
    lr: PositiveFloat = 1e-3
    """Peak learning rate."""
    weight_decay: NonNegative = 0.0
    """Of AdamW."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are clipped to this norm."""
    max_skipped: Annotated[int, Field(ge=0)] = 3
    """So many updates in a row may be left out because loss or gradient are not finite; one more ends the
    run."""
    max_mismatch: PositiveFloat = 0.01
    """Divergence of the trainer from the sampler on a token at the same weights, estimated by `k3`; above
    it there is an alarm: the engine does not sample what the trainer believes."""
    freeze_embeddings: bool = True
    """Keep token embeddings (and a tied output layer) as the cold start left them."""

    baseline: Baseline = "std"
    """What an episode's reward is measured by: `std` takes the group's mean and divides by its
    Bessel-corrected deviation (`population_std`: by the uncorrected one), `mean` only takes the mean
    (Dr. GRPO), `leave_one_out` takes the mean of the others (RLOO), `none` takes nothing."""
    ratio: Literal["token", "sequence"] = "token"
    """Probability ratio of each token, or one for a sample: the geometric mean of its tokens'
    (GSPO)."""
    clip_low: Fraction = 0.2
    """A ratio below `1 - clip_low` earns no further gradient."""
    clip_high: PositiveFloat = 0.28
    """A ratio above `1 + clip_high` earns no further gradient."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    """Where the advantage is negative, the loss is held below so many times its size."""
    surrogate: Literal["clip", "cispo"] = "clip"
    """`clip` cuts the ratio and with it the gradient (PPO); `cispo` cuts it only as a weight of the
    gradient, which every token keeps."""
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over all sampled tokens of an update (DAPO); mean over samples of their means (GRPO); sum
    over `aggregation_tokens` for each sample (Dr. GRPO)."""
    aggregation_tokens: Positive | None = None
    """The divisor of `constant`, such as the most tokens that a dialogue may have."""
    kl_coef: NonNegative = 0.0
    """Weight of the divergence from the model that GRPO began with; 0 leaves the reference out."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """How it is estimated on a token (Schulman 2020)."""
    kl_in: Literal["loss", "reward"] = "loss"
    """A term of the loss, or taken from the reward, summed over the episode's sampled tokens."""
    kl_max: PositiveFloat | None = None
    """One token's estimate is held within plus and minus this; null holds it nowhere."""
    entropy_coef: NonNegative = 0.0
    """Weight of the entropy of what is sampled from, which is then made larger."""
    correction: CorrectionSpec | None = None
    """Importance correction between sampler and trainer; null takes the sampler's log-probs as the
    trainer's own."""

    @model_validator(mode="after")
    def _fits_together(self) -> UpdateSpec:
        if (self.aggregation == "constant") != (self.aggregation_tokens is not None):
            raise ValueError("aggregation_tokens goes with aggregation: constant")
        if self.surrogate == "cispo" and self.dual_clip is not None:
            raise ValueError("dual_clip goes with surrogate: clip; cispo has no bound to double")
        return self


class GrpoSpec(UpdateSpec):
    """Group-relative policy optimisation, piece by piece."""

    split: Id = "train"
    """Tasks to train on."""
    mode: ModeSpec = ModeSpec(on_policy=OnPolicySpec())
    """Whether sampling waits for learning: `on_policy`, `one_step_off` or `asynchronous`."""
    iterations: Positive = 40
    """Rounds of rollouts and updates."""
    tasks_per_iteration: Positive = 24
    """Groups per round."""
    curriculum: CurriculumSpec | None = None
    """What a round's tasks are drawn by; null draws all tasks of the split alike."""
    lr_warmup_iterations: Annotated[int, Field(ge=0)] = 0
    """The first so many iterations take the rate up linearly to the peak."""
    lr_decay_iterations: Annotated[int, Field(ge=0)] = 0
    """The last so many iterations take the rate down; all of them in a run that has fewer."""
    lr_decay: Literal["linear", "cosine"] = "linear"
    """How."""
    lr_end: Fraction = 0.1
    """Share of the peak that is left at the last iteration, if there is a decay."""
    credit: CreditSpec = CreditSpec(outcome=OutcomeCredit())
    """How an episode's advantage is shared out among its turns."""
    shuffled_credit: bool = False
    """The control of a credit: each episode's turns get their advantages in an order drawn at
    random."""
    dynamic_sampling: DynamicSamplingSpec | None = None
    """Roll out further tasks in place of groups that teach nothing; null does not."""
    overlong: OverlongSpec | None = None
    """Punish what is too long; null does not."""
    drop: list[Literal["truncated", "void_turns"]] = []
    """Episodes that count in the baseline and not in the loss: `truncated` by any cap; with
    `void_turns`, messages that say nothing and call nothing (SimpleTIR)."""

    validation: ValidationSpec | None = None
    """Evaluate on further tasks meanwhile, and keep the weights that did best; null keeps the last."""

    @model_validator(mode="after")
    def _fits_as_a_run(self) -> GrpoSpec:
        free = self.mode.asynchronous
        if free is not None and free.stale == "correct" and self.correction is None:
            raise ValueError("stale: correct goes with a correction")
        if self.shuffled_credit and not self.credit.tells_turns_apart:
            raise ValueError(
                "shuffled_credit shuffles nothing: with this credit all turns of an episode are alike"
            )
        return self
