from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.kernel.advantage import curriculum_reward, group_advantages
from muarl.spec.grpo import Baseline

rewards = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0])), max_size=10)


def test_the_deviation_is_bessel_corrected() -> None:
    found = group_advantages([1.0, 0.0, 0.0, 0.0, 1.0])
    # mean 0.4; squares 2 * 0.36 + 3 * 0.16 = 1.2; over 4, not 5
    deviation = (1.2 / 4) ** 0.5 + 1e-6
    assert found == pytest.approx([0.6 / deviation, *[-0.4 / deviation] * 3, 0.6 / deviation])


def test_mean_only_subtracts() -> None:
    assert group_advantages([1.0, 0.0, 0.5], baseline="mean") == pytest.approx([0.5, -0.5, 0.0])


def test_eps_is_added_to_the_deviation() -> None:
    deviation = statistics.stdev([1.0, 0.0])
    assert group_advantages([1.0, 0.0], eps=0.5)[0] == pytest.approx(0.5 / (deviation + 0.5))


@pytest.mark.parametrize(
    "group", [[1.0], [0.0], [None, 1.0], [0.7] * 8, [0.1 + 0.2, 0.1 + 0.2], [0.3, None, 0.3]]
)
def test_alone_or_all_equal_is_exactly_zero(group: list[float | None]) -> None:
    assert all(a == 0.0 for a in group_advantages(group) if a is not None)


def test_a_group_of_faults_and_an_empty_one_have_no_advantages() -> None:
    assert group_advantages([None, None]) == [None, None]
    assert group_advantages([]) == []


@given(rewards, st.sampled_from(["std", "mean"]))
def test_faults_leave_their_siblings_as_if_they_had_not_been(
    group: list[float | None], mode: str
) -> None:
    scored = [reward for reward in group if reward is not None]
    found = group_advantages(group, baseline=mode)  # type: ignore[arg-type]
    assert [a is None for a in found] == [reward is None for reward in group]
    without = group_advantages(scored, baseline=mode)  # type: ignore[arg-type]
    assert [a for a in found if a is not None] == without


@given(rewards)
def test_advantages_sum_to_zero_and_keep_the_order_of_rewards(group: list[float | None]) -> None:
    pairs = [
        (r, a)
        for r, a in zip(group, group_advantages(group), strict=True)
        if r is not None and a is not None
    ]
    assert sum(a for _, a in pairs) == pytest.approx(0, abs=1e-9)
    assert [a for _, a in sorted(pairs)] == sorted(a for _, a in pairs)


GROUP = [1.0, 0.0, None, 0.25, 1.0]
SCORED = [1.0, 0.0, 0.25, 1.0]


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ("std", [(r - 0.5625) / (statistics.stdev(SCORED) + 1e-6) for r in SCORED]),
        ("population_std", [(r - 0.5625) / (statistics.pstdev(SCORED) + 1e-6) for r in SCORED]),
        ("mean", [r - 0.5625 for r in SCORED]),
        ("leave_one_out", [1 - 1.25 / 3, 0 - 2.25 / 3, 0.25 - 2 / 3, 1 - 1.25 / 3]),
        ("none", SCORED),
    ],
)
def test_each_baseline_by_its_definition(baseline: Baseline, expected: list[float]) -> None:
    found = group_advantages(GROUP, baseline=baseline)
    assert found[2] is None
    assert [a for a in found if a is not None] == pytest.approx(expected)


@pytest.mark.parametrize("episodes", [2, 3, 8])
def test_the_curriculum_reward_peaks_where_a_group_splits_evenly(episodes: int) -> None:
    rewards = [curriculum_reward(k, episodes) for k in range(episodes + 1)]
    p = np.arange(episodes + 1) / np.float64(episodes)
    np.testing.assert_allclose(rewards, 1 - np.abs(2 * p - 1), rtol=0, atol=1e-15)
    assert rewards[0] == rewards[-1] == 0.0
    assert rewards == rewards[::-1], "too easy is as bad as too hard"
    assert max(rewards) == rewards[episodes // 2]


def test_one_dialogue_alone_cannot_split() -> None:
    assert curriculum_reward(1, 1) is None
    assert curriculum_reward(0, 0) is None
