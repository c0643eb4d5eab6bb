"""What is made of a batch: samples and advantages, and updates of the weights from them."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from transformers import PreTrainedModel

from muarl.credit import Credited, Measured
from muarl.errors import NonFiniteLoss
from muarl.kernel.optimizer import grpo_lr
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import Advantage, GrpoMetrics, Trainer
from muarl.record import EpisodeKey, Sample
from muarl.scheduler import Group
from muarl.spec import GrpoSpec
from muarl.spec.grpo import UpdateSpec
from muarl.train.grpo import (
    TrainingSet,
    divergence_from,
    split_updates,
    training_set,
    update_metrics,
)
from muarl.train.mismatch import Mismatch, mismatch
from muarl.train.reference import Reference

_log = logging.getLogger(__name__)

_LOOKED_AT = 32
"""Samples of a batch on which the divergence from the cold start, when it is not held down, and the
sampler's error are measured: enough for a curve, cheap enough to have in every batch."""

_NAMED = 8
"""Episodes that a line of the log names."""


class Skipped(NamedTuple):
    """An update that was left out.

    Attributes:
        why: What was not finite.
        episodes: Those whose own loss or gradient is not finite; none if only their sum is not.
    """

    why: str
    episodes: list[str]


@dataclass
class Learned:
    """What became of a batch.

    Attributes:
        updates: What each update saw.
        skipped: Updates that were left out.
        idle: Updates that were not taken, since nothing moved them but rounding.
        divergence: Mean over sampled tokens from the policy that GRPO began with.
        dropped: Episodes that were left out of the loss, by why.
        credit: What the credit of turns made of the episodes' advantages.
        mismatch: Of sampler and trainer at the same weights; None where nothing was sampled by them.
        lags: Trained tokens by how many versions they lag behind.
        credited: What each episode earned, and each of its turns.
        looked_at: Samples with the trainer's log-probs of them, before the update.
    """

    updates: list[GrpoMetrics] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    idle: int = 0
    divergence: float | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    credit: Mapping[str, float] = field(default_factory=dict)
    mismatch: Mismatch | None = None
    lags: dict[int, int] = field(default_factory=dict)
    credited: Mapping[EpisodeKey, Credited] = field(default_factory=dict)
    looked_at: list[tuple[Sample, list[float]]] = field(default_factory=list)

    def lag_metrics(self) -> dict[str, Any]:
        """For the run's log."""
        tokens = sum(self.lags.values())
        return {
            "lag_mean": sum(lag * n for lag, n in self.lags.items()) / tokens if tokens else None,
            "lag_max": max(self.lags, default=None),
        }


def figures_of(learned: Learned, spec: UpdateSpec, *, key: str = "grpo") -> dict[str, Any]:
    """For the run's log.

    Args:
        learned: What became of the batch.
        spec: How it was learned from.
        key: Where that stands in the run's spec; alarms name it.
    """
    found, alarms = learned.mismatch, []
    rejected = sum(not u.num_tokens for u in learned.updates)
    if rejected:
        alarms.append(
            f"{rejected} of {len(learned.updates)} updates learned nothing: {key}.correction rejected every "
            "token. Widen reject_below and reject_above, or lower the lag"
        )
    if found is not None and not found.kl <= spec.max_mismatch:
        alarms.append(
            f"the sampler does not sample what the trainer believes at the same weights: KL "
            f"{found.kl:.3g} a token ({key}.max_mismatch {spec.max_mismatch:g}), largest gap of "
            f"log-probs {found.largest_gap:.3g}. A correction ({key}.correction) makes up for some of it"
        )
    return {
        **update_metrics(learned.updates),
        **learned.lag_metrics(),
        "dropped": dict(learned.dropped),
        "credit": dict(learned.credit),
        "kl": learned.divergence,
        "skipped": [skipped._asdict() for skipped in learned.skipped],
        "idle_updates": learned.idle,
        "mismatch": None if found is None else msgspec.to_builtins(found),
        "alarms": alarms,
    }


def skipped_last(lines: Iterable[Mapping[str, Any]]) -> int:
    """Updates that a run skipped last, one after another, by the lines of its log."""
    counts = [line["skipped_in_a_row"] for line in lines if "skipped_in_a_row" in line]
    return counts[-1] if counts else 0


class Learner:
    """A model that learns: the policy's from one batch after another, or that of a user.

    Until its first update it is the reference, so its divergence is 0 and has no slope (k2, k3). Two passes
    over the same weights differ by rounding all the same, and AdamW, which divides a gradient by its own
    size, would make a step at the full rate of that, and a baseline of deviations whole advantages. So
    the divergence counts from the second update on, and an update without any advantage before that is
    not taken.

    Args:
        trainer: Moves the weights.
        reference: What GRPO began with.
        spec: How.
        temperature: Of the sampler.
        skipped_in_a_row: Updates that were skipped last, one after another.

    Attributes:
        skipped_in_a_row: The same, as it is now.
    """

    def __init__(
        self,
        trainer: Trainer,
        reference: Reference,
        spec: UpdateSpec,
        *,
        temperature: float,
        skipped_in_a_row: int = 0,
    ) -> None:
        self.trainer = trainer
        self._reference = reference
        self._spec = spec
        self._temperature = temperature
        self.skipped_in_a_row = skipped_in_a_row

    def learn(
        self,
        groups: Sequence[Group],
        iteration: int,
        rng: random.Random,
        measured: Measured,
        spec: GrpoSpec,
    ) -> Learned:
        """Update a policy's weights. Blocking: meant for a worker thread.

        Args:
            groups: What from.
            iteration: Number of the iteration, which is the version of the present weights.
            rng: Deals samples into updates.
            measured: Of the episodes' turns, for credits that need more than the record.
            spec: What is made of rewards, and the rate.

        Raises:
            NonFiniteLoss: As `learn_from`.
        """
        penalties = self._penalties(groups, spec)
        found = training_set(groups, spec, penalties=penalties, measured=measured)
        return self.learn_from(found, iteration, lr=grpo_lr(iteration, spec), rng=rng)

    def learn_from(
        self, found: TrainingSet, iteration: int, *, lr: float, rng: random.Random
    ) -> Learned:
        """Update the weights. Blocking: meant for a worker thread.

        Args:
            found: What from.
            iteration: Number of the iteration, which is the version of the present weights.
            lr: Learning rate.
            rng: Deals samples into updates.

        Raises:
            NonFiniteLoss: More updates in a row than may be had to be skipped.
        """
        spec = self._spec
        in_loss = _holds_in_loss(spec)
        ours = found.samples if in_loss else found.samples[:_LOOKED_AT]
        theirs, gaps = self._referenced(ours)
        tokens = sum(s.num_sampled for s in ours)
        compared = mismatch(
            self.trainer.model,
            found.samples,
            version=iteration,
            temperature=self._temperature,
            most=_LOOKED_AT,
            kernel=self.trainer.kernel,
            ranks=self.trainer.ranks,
        )
        learned = Learned(
            divergence=math.fsum(gaps) / tokens if tokens else None,
            dropped=found.dropped,
            credit=found.credit_metrics(),
            lags=lags(found.samples, iteration),
            mismatch=None if compared is None else compared.found,
            credited=found.credited,
            looked_at=[] if compared is None else compared.pairs(found.samples),
        )
        old = None
        if spec.correction is not None:
            old = self._logprobs(self.trainer.model, found.samples)
        for part in split_updates(len(found.samples), spec.updates_per_iteration, rng):
            self._update(found, part, iteration, lr, theirs if in_loss else None, old, learned)
        return learned

    def _update(
        self,
        found: TrainingSet,
        part: Sequence[int],
        iteration: int,
        lr: float,
        reference: Sequence[Sequence[float]] | None,
        old: Sequence[Sequence[float]] | None,
        learned: Learned,
    ) -> None:
        spec = self._spec
        if self._is_reference and _holds_in_loss(spec):
            if not spec.entropy_coef and not any(_moves(found.advantages[i]) for i in part):
                learned.idle += 1
                return
            spec, reference = spec.model_copy(update={"kl_coef": 0.0}), None

        def update(chosen: Sequence[int], rate: float | None) -> GrpoMetrics:
            return self.trainer.grpo_update(
                [found.samples[i] for i in chosen],
                [found.advantages[i] for i in chosen],
                spec=spec,
                lr=rate,
                temperature=self._temperature,
                reference_logprobs=None if reference is None else [reference[i] for i in chosen],
                old_logprobs=None if old is None else [old[i] for i in chosen],
            )

        try:
            learned.updates.append(update(part, lr))
        except NonFiniteLoss as problem:
            skipped = Skipped(str(problem), _culprits(found, part, update))
            learned.skipped.append(skipped)
            self.skipped_in_a_row += 1
            _log.warning("iteration %d: update skipped: %s", iteration, _in_words(skipped))
            if self.skipped_in_a_row > self._spec.max_skipped:
                raise NonFiniteLoss(
                    f"{self.skipped_in_a_row} updates in a row had to be skipped (grpo.max_skipped "
                    f"{self._spec.max_skipped}); the last: {_in_words(skipped)}"
                ) from problem
        else:
            self.skipped_in_a_row = 0

    @property
    def _is_reference(self) -> bool:
        """Whether it is still the reference, whose divergence is 0; k1 has a slope there all the same."""
        return self.trainer.num_updates == 0 and self._spec.kl_estimator != "k1"

    def _logprobs(self, model: PreTrainedModel, samples: Sequence[Sample]) -> list[list[float]]:
        return sample_logprobs(
            model,
            samples,
            temperature=self._temperature,
            kernel=self.trainer.kernel,
            ranks=self.trainer.ranks,
        )

    def _referenced(self, samples: Sequence[Sample]) -> tuple[list[list[float]], list[float]]:
        """Log-probs under the reference, and how far each sample is from it."""
        with self._reference() as model:
            theirs = self._logprobs(model, samples)
        return theirs, divergence_from(samples, theirs, self._spec)

    def _penalties(self, groups: Sequence[Group], spec: GrpoSpec) -> dict[Any, float]:
        if not (spec.kl_coef and spec.kl_in == "reward") or self.trainer.num_updates == 0:
            return {}
        scored = [e for g in groups for e in g.episodes if e.reward is not None]
        _, gaps = self._referenced([s for e in scored for s in e.samples])
        of_samples = iter(gaps)
        return {
            e.key: spec.kl_coef * math.fsum(next(of_samples) for _ in e.samples) for e in scored
        }


def _holds_in_loss(spec: UpdateSpec) -> bool:
    return spec.kl_coef > 0 and spec.kl_in == "loss"


def _moves(advantage: Advantage) -> bool:
    return any(advantage) if isinstance(advantage, Sequence) else bool(advantage)


def lags(samples: Sequence[Sample], version: int) -> dict[int, int]:
    """Sampled tokens by how many versions their weights lag behind `version`.

    Example: `version` 3, spans [0, 4) of version 3 and [6, 8) of version 2 give {0: 4, 1: 2}.
    """
    found: dict[int, int] = {}
    for sample in samples:
        for span in sample.spans:
            lag = version - span.policy_version
            found[lag] = found.get(lag, 0) + span.end - span.start
    return dict(sorted(found.items()))


def _culprits(found: TrainingSet, part: Sequence[int], update: Any) -> list[str]:
    """Episodes whose samples alone are not finite either."""
    named: dict[str, None] = {}
    for index in part:
        try:
            update([index], None)
        except NonFiniteLoss:
            named[str(found.owners[index])] = None
    return list(named)


def _in_words(skipped: Skipped) -> str:
    if not skipped.episodes:
        return f"{skipped.why}. Of no episode alone: only their sum overflows"
    more = len(skipped.episodes) - _NAMED
    names = ", ".join(skipped.episodes[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{skipped.why}. Of themselves not finite: {names}"
