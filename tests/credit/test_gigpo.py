from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

import pytest
from credit_kit import T, dialogue, groups, rewards_of, spec_of
from hypothesis import given

from muarl.credit import turn_advantages
from muarl.credit.states import states_before_turns
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode


def turns_of(episodes: list[Episode], **keys: Any) -> list[list[float]]:
    found = turn_advantages(episodes, rewards_of(episodes), spec_of("gigpo", **keys))
    return [credited.turns for credited in found if credited is not None]


def test_the_worked_example() -> None:
    good = dialogue([T(call={}, sets={"a": "x"}), T("stop")], 1.0, 0)
    bad = dialogue([T(call={}, sets={"a": "y"}), T("stop")], 0.0, 1)
    half = 0.5 / (0.5**0.5 + 1e-6)
    found = turns_of([good, bad], discount=1.0)
    assert found[0] == pytest.approx([2 * half, half])
    assert found[1] == pytest.approx([-2 * half, -half])


def test_the_same_world_reached_on_two_ways_is_one_anchor() -> None:
    apart = dialogue([T(call={}, sets={"a": "x"}), T(call={}, sets={"b": "y"}), T("stop")], 1.0, 0)
    at_once = dialogue([T(call={}, sets={"b": "y", "a": "x"}), T("stop")], 0.0, 1)
    outcome = group_advantages([1.0, 0.0])
    first, second = turns_of([apart, at_once], discount=1.0)
    assert first[2] != pytest.approx(outcome[0])
    assert second[1] != pytest.approx(outcome[1])
    assert first[1] == pytest.approx(outcome[0])  # nobody else was there


def test_what_is_answered_may_tell_equal_worlds_apart() -> None:
    asked = dialogue([T("tell:id", says="A17"), T("stop")], 1.0, 0)
    not_understood = dialogue([T("unclear", says="what?"), T("stop")], 0.0, 1)
    outcome = group_advantages([1.0, 0.0])
    by_world = turns_of([asked, not_understood], discount=1.0)
    by_both = turns_of([asked, not_understood], discount=1.0, anchor="world_and_answer")
    assert by_world[0][1] != pytest.approx(outcome[0])
    assert by_both[0][1] == pytest.approx(outcome[0])


@given(groups(faults=False))
def test_against_a_plain_reference(episodes: list[Episode]) -> None:
    steps = [
        (number, turn, state, (e.reward or 0.0) * 0.9 ** (len(e.turns) - 1 - turn))
        for number, e in enumerate(episodes)
        for turn, state in enumerate(states_before_turns(e))
    ]
    by_state = defaultdict(list)
    for _, _, state, value in steps:
        by_state[state].append(value)
    plain = group_advantages(rewards_of(episodes))
    found = turns_of(episodes, weight=0.7, discount=0.9)
    for number, turn, state, value in steps:
        same = by_state[state]
        deviation = statistics.stdev(same) if len(same) > 1 else 0.0
        step = (value - statistics.mean(same)) / (deviation + 1e-6) if deviation > 1e-12 else 0.0
        assert found[number][turn] == pytest.approx((plain[number] or 0.0) + 0.7 * step, abs=1e-7)
