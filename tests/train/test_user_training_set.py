"""What a round gives a user to learn from: the curriculum reward, measured over the whole round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.record import Episode, Outcome, Sample, Span
from muarl.scheduler import Group
from muarl.spec.user_model import UserGrpoSpec
from muarl.testing.episodes import build_episode, build_key
from muarl.train.user_grpo import user_metrics, user_token_drift, user_training_set

STD = UserGrpoSpec()


def sample(first: int = 0, *, version: int = 0) -> Sample:
    """Three ids of a prompt and two that she sampled."""
    return Sample([first, 1, 2, 3, 4], [Span(3, 5, version)], [-0.5, -0.25])


def group(
    rewards: Sequence[float | None],
    task: str = "task-1",
    *,
    version: int = 0,
    rejected: int = 0,
    fault: Outcome = Outcome.INFRA_FAULT,
    breach: str | None = "leak",
) -> Group:
    """Dialogues with these rewards; None is a fault. Each threw `rejected` messages away."""
    episodes = [
        build_episode(
            build_key(task, number),
            reward=reward,
            outcome=fault if reward is None else Outcome.COMPLETED,
            breach=breach if reward is None else None,
            user_samples=[sample(number, version=version)],
            user_rejected=[sample(100 + i, version=version) for i in range(rejected)],
        )
        for number, reward in enumerate(rewards)
    ]
    return Group(episodes[0].key.group, tuple(episodes))


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=8), min_size=1, max_size=6
    )
)
def test_advantages_are_those_of_the_closed_form_in_double_precision(
    rewards: list[list[float]],
) -> None:
    groups = [group(of_task, f"task-{number}") for number, of_task in enumerate(rewards)]
    # With a divergence in the loss, what has no advantage stays.
    found = user_training_set(groups, UserGrpoSpec(kl_coef=0.1), version=0)
    # A dialogue succeeded if it earned all; r of its group, then (r - mean) / (s + eps) of the round.
    r = np.concatenate(
        [
            np.full(len(row), 1 - abs(2 * np.mean(np.array(row) == 1.0) - 1), dtype=np.float64)
            for row in rewards
        ]
    )
    flat = np.ptp(r) == 0
    expected = np.zeros(len(r)) if flat else (r - r.mean()) / (r.std(ddof=1) + 1e-6)
    np.testing.assert_allclose(found.advantages, expected, rtol=0, atol=1e-12)
    if flat:
        assert user_training_set(groups, STD, version=0).samples == []


def test_the_even_group_is_taught_and_the_won_one_untaught() -> None:
    found = user_training_set([group([1.0, 0.0]), group([1.0, 1.0], "task-2")], STD, version=0)
    assert [np.sign(a) for a in found.advantages] == [1, 1, -1, -1]


def test_what_her_guards_threw_away_earns_nothing_as_a_sample_of_its_own() -> None:
    found = user_training_set(
        [group([1.0, 0.0], rejected=1), group([1.0, 1.0], "task-2")], STD, version=0
    )
    r = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found.advantages, (r - r.mean()) / (r.std(ddof=1) + 1e-6))
    assert [s.token_ids[0] for s in found.samples] == [0, 100, 1, 100, 0, 1]


def test_a_dialogue_that_her_breach_ended_earns_her_nothing_and_one_that_broke_leaves_L2() -> None:
    even = group([1.0, 0.0, None], fault=Outcome.USER_FAULT, rejected=0)
    found = user_training_set([even], STD, version=0)
    assert [np.sign(a) for a in found.advantages] == [1, 1, -1]

    for fault, breach in ((Outcome.INFRA_FAULT, None), (Outcome.USER_FAULT, "context")):
        broken = group([1.0, 0.0, None], fault=fault, breach=breach)
        others = group([1.0, 1.0], "task-2")
        with_fault = user_training_set([broken, others], STD, version=0)
        without = user_training_set([group([1.0, 0.0]), others], STD, version=0)
        assert with_fault.advantages == without.advantages, "as if it had not been there"


def test_a_group_with_one_score_leaves() -> None:
    found = user_training_set([group([1.0, None]), group([1.0, 0.0], "task-2")], STD, version=0)
    assert found.samples == [], "the one group left is all alike"


def test_what_past_users_said_is_not_trained_on() -> None:
    groups = [group([1.0, 0.0], version=2), group([1.0, 1.0], "task-2", version=3)]
    assert user_training_set(groups, UserGrpoSpec(baseline="none"), version=2).advantages == [1, 1]
    assert user_metrics(groups, version=2)["episodes"] == 2
    mixed = Group(
        groups[0].key,
        (*groups[0].episodes, *groups[1].episodes),
    )
    found = user_training_set([mixed], UserGrpoSpec(baseline="none"), version=2)
    assert found.advantages == pytest.approx([0.5, 0.5]), "p is that of the whole group"


def test_with_a_divergence_in_the_loss_flat_rounds_stay() -> None:
    assert user_training_set([group([1.0, 1.0])], STD, version=0).samples == []
    held = user_training_set([group([1.0, 1.0])], UserGrpoSpec(kl_coef=0.1), version=0)
    assert held.advantages == [0.0, 0.0]


@pytest.mark.parametrize(
    "broken",
    [
        Sample([0, 1, 2, 3, 4], [Span(3, 5, 0)], [-0.5]),
        Sample([0, 1, 2, 3, 4, 5], [Span(3, 5, 0)], [-0.5, -0.5]),
        Sample([0, 1, 2, 3, 4], [Span(3, 5, 0), Span(4, 5, 0)], [-0.5] * 3),
        Sample([0, 1], [Span(0, 2, 0)], [-0.5] * 2),
    ],
)
def test_a_record_that_contradicts_itself_is_drift_L1(broken: Sample) -> None:
    def drift(**fields: list[Sample]) -> int:
        return user_token_drift([build_episode(**fields)])

    assert drift(user_samples=[sample()], user_rejected=[sample()]) == 0
    assert drift(user_samples=[broken]) > 0
    assert drift(user_rejected=[broken]) > 0


def test_a_scripted_user_has_nothing_to_learn() -> None:
    episode: Episode = build_episode()
    scripted = Group(episode.key.group, (episode, build_episode(build_key(sample=1), reward=0.0)))
    assert user_training_set([scripted], STD, version=0).samples == []
    assert user_metrics([scripted], version=0)["reward_mean"] == 1.0
