from __future__ import annotations

import statistics

import pytest
from credit_kit import T, dialogue, groups, rewards_of, spec_of
from hypothesis import given

from muarl.credit import turn_advantages
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode


def test_the_worked_example() -> None:
    episodes = [dialogue([T("next"), T("stop")], 1.0, 0), dialogue([T("stop")], 0.0, 1)]
    spec = spec_of("discounted", baseline="mean", discount=0.5)
    first, second = turn_advantages(episodes, rewards_of(episodes), spec)
    assert first is not None
    assert second is not None
    assert first.outcome == 0.5
    assert first.turns == pytest.approx([0.25 * 2 / 3, 0.25 * 4 / 3])  # scores 0.5 and 0
    assert second.turns == pytest.approx([-0.25])


def test_of_two_successes_the_shorter_is_worth_more() -> None:
    episodes = [dialogue([T("stop")], 1.0, 0), dialogue([T("next")] * 3, 1.0, 1)]
    spec = spec_of("discounted", turns="equal", score="to_go", discount=0.8)
    short, long = turn_advantages(episodes, rewards_of(episodes), spec)
    scores = [1.0, 0.8**2]
    deviation = statistics.stdev(scores) + 1e-6
    assert short is not None
    assert long is not None
    assert short.turns == pytest.approx([(1 - statistics.mean(scores)) / deviation])
    assert long.turns == pytest.approx([-short.turns[0]] * 3)


@given(groups(faults=False))
def test_shares_conserve_the_sum_over_tokens_and_the_sign(episodes: list[Episode]) -> None:
    spec = spec_of("discounted", score="sum", discount=0.7)
    plain = group_advantages(rewards_of(episodes))
    found = turn_advantages(episodes, rewards_of(episodes), spec)
    for episode, outcome, credited in zip(episodes, plain, found, strict=True):
        assert credited is not None
        assert outcome is not None
        tokens = [turn.end - turn.start for turn in episode.turns]
        total = sum(a * n for a, n in zip(credited.turns, tokens, strict=True))
        assert total == pytest.approx(outcome * sum(tokens), abs=1e-9)
        assert all(value * outcome >= 0 for value in credited.turns)
        assert sorted(map(abs, credited.turns)) == pytest.approx([*map(abs, credited.turns)])
