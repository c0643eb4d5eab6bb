"""What holds of every method: plain GRPO at weight 0, faults, order, and the shuffled control."""

from __future__ import annotations

from typing import Any

import pytest
from credit_kit import METHODS, T, dialogue, groups, measured_of, rewards_of, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from muarl.credit import turn_advantages
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode
from muarl.scheduler import Group
from muarl.spec import GrpoSpec
from muarl.train.grpo import training_set

WEIGHTED = [method for method in METHODS if method != "outcome"]
BASELINES = ["std", "population_std", "mean", "leave_one_out", "none"]


def turns_of(episodes: list[Episode], spec: GrpoSpec) -> list[list[float] | None]:
    found = turn_advantages(episodes, rewards_of(episodes), spec, measured=measured_of(episodes))
    return [None if credited is None else credited.turns for credited in found]


@pytest.mark.parametrize("method", WEIGHTED)
@given(episodes=groups(), baseline=st.sampled_from(BASELINES))
@settings(max_examples=25)
def test_weight_zero_is_plain_grpo(method: str, episodes: list[Episode], baseline: str) -> None:
    spec = spec_of(method, baseline=baseline, weight=0)
    plain = group_advantages(rewards_of(episodes), baseline=spec.baseline)
    expected = [
        None if a is None else [a] * len(e.turns) for e, a in zip(episodes, plain, strict=True)
    ]
    assert turns_of(episodes, spec) == expected
    groups_ = [Group(episodes[0].key.group, episodes)]
    measured: Any = measured_of(episodes)
    ours = training_set(groups_, spec, measured=measured)
    theirs = training_set(groups_, GrpoSpec.model_validate({"baseline": baseline}))
    assert ours.samples == theirs.samples
    assert ours.advantages == pytest.approx(theirs.advantages, abs=1e-7)


@pytest.mark.parametrize("method", WEIGHTED)
def test_a_weight_that_goes_to_zero_goes_to_plain_grpo(method: str) -> None:
    episodes = [
        dialogue(
            [T("tell:id", says="it is A17"), T(call={"id": "A17"}, sets={"a": "x"}), T("stop")]
        ),
        dialogue([T("unclear"), T(call={"id": "C"}, fails=True, tokens=5)], 0.0, 1),
        dialogue([T("confirm", tokens=3)], 0.25, 2),
    ]
    plain = group_advantages(rewards_of(episodes))
    for found, outcome in zip(turns_of(episodes, spec_of(method, weight=1e-9)), plain, strict=True):
        assert found == pytest.approx([outcome] * len(found or ()), abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
@given(episodes=groups())
@settings(max_examples=25)
def test_siblings_of_a_fault_get_what_they_would_get_without_it(
    method: str, episodes: list[Episode]
) -> None:
    spec = spec_of(method)
    found = turns_of(episodes, spec)
    assert [row is None for row in found] == [e.reward is None for e in episodes]
    scored = [e for e in episodes if e.reward is not None]
    assert [row for row in found if row is not None] == turns_of(scored, spec)


@pytest.mark.parametrize("method", METHODS)
@given(episodes=groups(), data=st.data())
@settings(max_examples=25)
def test_the_order_of_siblings_does_not_matter(
    method: str, episodes: list[Episode], data: st.DataObject
) -> None:
    spec = spec_of(method)
    order = data.draw(st.permutations(range(len(episodes))))
    there, here = turns_of(episodes, spec), turns_of([episodes[i] for i in order], spec)
    for place, number in enumerate(order):
        assert here[place] == pytest.approx(there[number], abs=1e-9)


@pytest.mark.parametrize(
    ("method", "keys"),
    [
        ("outcome", {}),
        ("influence", {}),
        ("discounted", {"score": "sum"}),
        ("gigpo", {"discount": 1.0}),
    ],
)
@given(episodes=groups(faults=False))
@settings(max_examples=25)
def test_an_all_equal_group_teaches_nothing(
    method: str, keys: dict[str, Any], episodes: list[Episode]
) -> None:
    for episode in episodes:
        episode.reward = 0.5
    spec = spec_of(method, **keys)
    assert all(value == 0.0 for row in turns_of(episodes, spec) for value in row or ())


@pytest.mark.parametrize("method", WEIGHTED)
@given(episodes=groups())
@settings(max_examples=25)
def test_the_control_gives_each_episode_the_same_numbers(
    method: str, episodes: list[Episode]
) -> None:
    true, control = spec_of(method), spec_of(method, shuffled=True)
    rows, shuffled = turns_of(episodes, true), turns_of(episodes, control)
    assert shuffled == turns_of(episodes, control)
    for row, other in zip(rows, shuffled, strict=True):
        assert (row is None) == (other is None)
        assert sorted(row or ()) == sorted(other or ())


def test_the_control_moves_them() -> None:
    episodes = [dialogue([T("confirm")] * 6, 1.0, 0), dialogue([T("unclear")] * 6, 0.0, 1)]
    true, control = (spec_of("discounted", shuffled=on) for on in (False, True))
    assert turns_of(episodes, control) != turns_of(episodes, true)


@pytest.mark.parametrize(
    ("credit", "shuffled", "told"),
    [
        ({"outcome": {}}, True, "shuffles nothing"),
        ({"discounted": {}}, True, "shuffles nothing"),
        ({"gigpo": {"weight": 0}}, True, "shuffles nothing"),
        ({"discounted": {"score": "sum"}}, False, "plain GRPO"),
        ({"gigpo": {}, "outcome": {}}, False, "exactly one"),
        ({"reaction": {"weight": 0.6}}, False, "less than or equal to 0.5"),
        ({"reaction": {"polarity": {"chnage": 0}}}, False, "did you mean 'change'"),
        ({"influence": {"weight": 1.5}}, False, "less than or equal to 1"),
    ],
)
def test_a_credit_that_does_nothing_or_is_none_is_refused(
    credit: dict[str, Any], shuffled: bool, told: str
) -> None:
    with pytest.raises(ValidationError, match=told):
        GrpoSpec.model_validate({"credit": credit, "shuffled_credit": shuffled})


def test_turns_reach_the_tokens_of_their_samples() -> None:
    episodes = [
        dialogue([T("next", tokens=2), T("stop", tokens=1)], 1.0, 0),
        dialogue([T("unclear", tokens=3)], 0.0, 1),
    ]
    spec = spec_of("reaction", baseline="mean", weight=0.5)
    found = training_set([Group(episodes[0].key.group, episodes)], spec)
    z = [2 / 3 / (4 / 3) ** 0.5, -4 / 3 / (4 / 3) ** 0.5]  # reactions 1, 1, -1
    assert found.advantages[0] == pytest.approx(0.5 + 0.5 * z[0], abs=1e-5)
    assert found.advantages[1] == pytest.approx(-0.5 - 0.5, abs=1e-5)  # held at the limit of 1
    assert z[1] < -1
    spec = spec_of("discounted", baseline="mean", score="sum", discount=0.5)
    first, second = training_set([Group(episodes[0].key.group, episodes)], spec).advantages
    assert first == pytest.approx([0.5 * 0.75, 0.5 * 0.75, 0.5 * 1.5])
    assert second == pytest.approx(-0.5)
