"""What a round gives to learn from, and what is taken from rewards before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from muarl.messages import Message
from muarl.record import Outcome
from muarl.scheduler import Group
from muarl.spec import GrpoSpec
from muarl.testing.episodes import build_episode, build_key
from muarl.train.grpo import shaped_reward, split_updates, teaches, training_set


def group(rewards: Sequence[float | None], task: str = "task-1", **fields: Any) -> Group:
    episodes = [
        build_episode(
            build_key(task, number),
            reward=reward,
            outcome=Outcome.COMPLETED if reward is not None else Outcome.INFRA_FAULT,
            **fields,
        )
        for number, reward in enumerate(rewards)
    ]
    return Group(episodes[0].key.group, episodes)


MEAN = GrpoSpec(baseline="mean")


def test_faults_and_groups_that_teach_nothing_are_left_out() -> None:
    groups = [group([1.0, 0.0, None, 0.0]), group([1.0, 1.0, None], "task-2")]
    found = training_set(groups, MEAN)
    assert found.advantages == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert found.samples == [groups[0].episodes[i].samples[0] for i in (0, 1, 3)]


def test_a_divergence_in_the_loss_concerns_all_groups_and_one_in_the_reward_does_not() -> None:
    equal = [group([1.0, 1.0])]
    assert training_set(equal, GrpoSpec(kl_coef=0.1)).advantages == [0.0, 0.0]
    assert training_set(equal, GrpoSpec(kl_coef=0.1, kl_in="reward")).advantages == []


def test_an_entropy_in_the_loss_concerns_all_groups() -> None:
    assert training_set([group([1.0, 1.0])], GrpoSpec(entropy_coef=0.1)).advantages == [0.0, 0.0]


def test_penalties_are_taken_before_the_baseline() -> None:
    equal = group([1.0, 1.0])
    penalties = {equal.episodes[0].key: 0.5}
    spec = GrpoSpec(baseline="mean", kl_coef=0.1, kl_in="reward")
    assert training_set([equal], spec, penalties=penalties).advantages == [-0.25, 0.25]


@pytest.mark.parametrize(
    ("turns", "taken"),
    [(1, 0.0), (2, 0.0), (3, 0.25), (4, 0.5), (5, 0.5)],  # 5 sampled tokens a turn
)
def test_the_soft_punishment_is_linear_between_its_bounds(turns: int, taken: float) -> None:
    spec = GrpoSpec.model_validate(
        {"overlong": {"max_tokens": 20, "buffer_tokens": 10, "penalty": 0.5}}
    )
    assert shaped_reward(build_episode(num_turns=turns), spec) == pytest.approx(1.0 - taken)


def test_a_fault_has_no_reward_to_shape() -> None:
    assert shaped_reward(build_episode(outcome=Outcome.INFRA_FAULT), MEAN, penalty=1.0) is None


def test_what_is_dropped_counts_in_the_baseline_and_is_counted() -> None:
    cut = group([1.0, 0.0, 0.0])
    cut.episodes[1].outcome = Outcome.TRUNCATED_TURNS
    void = group([1.0, 0.0], "task-2")
    void.episodes[1].turns[0].message = Message("assistant", " \n")
    spec = GrpoSpec(baseline="mean", drop=["truncated", "void_turns"])
    found = training_set([cut, void], spec)
    assert found.advantages == pytest.approx([2 / 3, -1 / 3, 0.5])
    assert found.dropped == {"truncated": 1, "void_turns": 1}
    assert training_set([cut, void], MEAN).dropped == {}


@pytest.mark.parametrize(
    ("rewards", "expected"), [([1.0, 0.0], True), ([1.0, 1.0], False), ([1.0, None], False)]
)
def test_a_group_teaches_where_its_rewards_differ(
    rewards: list[float | None], expected: bool
) -> None:
    assert teaches(group(rewards), MEAN) is expected


def test_updates_share_the_samples_evenly_and_lose_none() -> None:
    parts = split_updates(7, 3, random.Random(0))
    assert sorted(map(len, parts)) == [2, 2, 3]
    assert sorted(number for part in parts for number in part) == list(range(7))
    assert split_updates(1, 3, random.Random(0)) == [[0]]
