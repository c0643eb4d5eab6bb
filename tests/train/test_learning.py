"""What moves the weights, and what does not: a batch as a learner takes it."""

from __future__ import annotations

import copy
import random
from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from kernel_kit import random_samples, tiny_model
from transformers import PreTrainedModel

from muarl.kernel.step import Trainer
from muarl.record import EpisodeKey
from muarl.scheduler import Group
from muarl.spec import GrpoSpec
from muarl.spec.grpo import CorrectionSpec
from muarl.spec.kernel import KernelSpec
from muarl.testing.episodes import build_episode, build_key
from muarl.train.grpo import TrainingSet
from muarl.train.learning import Learned, Learner, figures_of


def a_bit_off(model: PreTrainedModel) -> PreTrainedModel:
    """The same weights, but for rounding: what another order of sums does to log-probs."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1 + 2e-7)
    return other


class Pupil:
    """A tiny model that learns from random samples with advantages of our choice."""

    def __init__(self, **spec: Any) -> None:
        self.spec = GrpoSpec.model_validate(
            {"lr": 1e-2, "updates_per_iteration": 1, "freeze_embeddings": False, **spec}
        )
        self.model = tiny_model()
        self.trainer = Trainer.for_grpo(self.model, self.spec)
        other = a_bit_off(self.model)
        self.learner = Learner(self.trainer, lambda: nullcontext(other), self.spec, temperature=1.0)

    def learn(self, *advantages: float, iteration: int = 0) -> Learned:
        samples = random_samples(len(advantages))
        keys: list[EpisodeKey] = [build_key("task", number) for number in range(len(samples))]
        found = TrainingSet(samples, list(advantages), keys, Counter(), {})
        return self.learner.learn_from(found, iteration, lr=1e-2, rng=random.Random(0))

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def moved(self, before: dict[str, torch.Tensor]) -> float:
        return max((p - before[name]).abs().max().item() for name, p in self.weights().items())


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_a_step_of_which_rounding_is_the_only_signal_is_not_taken(estimator: str) -> None:
    pupil = Pupil(kl_coef=0.1, kl_estimator=estimator, weight_decay=0.1)
    before = pupil.weights()
    learned = pupil.learn(0.0, 0.0, 0.0)
    assert pupil.moved(before) == 0.0
    assert (learned.idle, learned.updates, pupil.trainer.num_updates) == (1, [], 0)


def test_the_first_update_is_that_without_a_divergence_whose_slope_is_zero_there() -> None:
    held, free = Pupil(kl_coef=100.0), Pupil()
    for pupil in (held, free):
        assert pupil.learn(1.0, -1.0, 0.0).idle == 0
    assert held.moved(free.weights()) == 0.0


def test_once_it_has_learned_even_groups_are_held_to_the_reference() -> None:
    pupil = Pupil(kl_coef=0.1)
    pupil.learn(1.0, -1.0)
    before = pupil.weights()
    learned = pupil.learn(0.0, 0.0, iteration=1)
    assert (learned.idle, len(learned.updates)) == (0, 1)
    assert pupil.moved(before) > 0
    assert learned.updates[0].kl > 0


def test_entropy_and_k1_have_a_slope_of_their_own_at_the_reference() -> None:
    for other in ({"entropy_coef": 0.01}, {"kl_estimator": "k1"}):
        pupil = Pupil(kl_coef=0.1, **other)
        assert len(pupil.learn(0.0, 0.0).updates) == 1


def test_an_update_of_which_all_is_rejected_moves_nothing_and_is_an_alarm() -> None:
    pupil = Pupil(weight_decay=0.1)
    pupil.learn(1.0, -1.0)  # so that there is a momentum
    narrow = CorrectionSpec(truncate=None, reject_below=1 - 1e-6, reject_above=1 + 1e-6)
    pupil.learner = Learner(
        pupil.trainer,
        lambda: nullcontext(pupil.model),
        pupil.spec.model_copy(update={"correction": narrow}),
        temperature=1.0,
    )
    before, made = pupil.weights(), pupil.trainer.num_updates
    learned = pupil.learn(1.0, -1.0, iteration=1)
    assert pupil.moved(before) == 0.0
    assert pupil.trainer.num_updates == made
    figures = figures_of(learned, pupil.spec)
    assert figures["trained_tokens"] == 0
    assert figures["importance_rejected"] == 1
    assert not figures.keys() & {"loss", "entropy", "ratio_max", "clip_fraction", "grad_norm"}
    (alarm,) = (a for a in figures["alarms"] if "rejected" in a)
    assert alarm.startswith("1 of 1 updates learned nothing: grpo.correction rejected every token")


def test_turns_of_one_episode_that_differ_are_a_signal() -> None:
    pupil = Pupil(kl_coef=0.1)
    (sample,) = random_samples(1)
    turns = [1.0] * (sample.num_sampled - 1) + [-1.0]
    found = TrainingSet([sample], [turns], [build_key("task", 0)], Counter(), {})
    learned = pupil.learner.learn_from(found, 0, lr=1e-2, rng=random.Random(0))
    assert (learned.idle, len(learned.updates)) == (0, 1)


def test_rounding_is_not_taken_from_rewards_which_a_deviation_would_blow_up() -> None:
    pupil = Pupil(kl_coef=0.1, kl_in="reward")
    episodes = [build_episode(build_key("task", number), reward=1.0) for number in range(4)]
    group = Group(episodes[0].key.group, episodes)
    before = pupil.weights()
    learned = pupil.learner.learn([group], 0, random.Random(0), {}, pupil.spec)
    assert (pupil.moved(before), learned.updates) == (0.0, [])


def test_the_samplers_error_is_measured_in_the_precision_that_is_trained_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def looked(*_args: object, kernel: KernelSpec | None = None, **how: object) -> None:
        del how
        asked.append(kernel)

    monkeypatch.setattr("muarl.train.learning.mismatch", looked)
    kernel = KernelSpec(precision="bf16", max_tokens=64)
    pupil = Pupil()
    pupil.trainer.kernel = kernel
    pupil.learn(1.0, -1.0)
    assert asked == [kernel]
