from __future__ import annotations

from typing import Any

import pytest
from credit_kit import T, dialogue, rewards_of, spec_of
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from muarl.credit import turn_advantages
from muarl.credit.checklist import Tally
from muarl.spec.credit import ChecklistCredit, ChecklistItem

HELD = {"when": {"gold_world": True}}


def items(*given: dict[str, Any]) -> list[ChecklistItem]:
    return [ChecklistItem.model_validate(HELD | keys) for keys in given]


def points(of: list[ChecklistItem], scores: list[list[float | None]]) -> list[float]:
    tally = Tally(of, len(scores) - 1)
    names = [item.id for item in of]
    for row in scores:
        tally.take(dict(zip(names, row, strict=True)))
    return tally.points


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[0], [0], [1], [1]], [0, 1, 0]),
        ([[0], [1], [0], [1]], [1, 0, 0]),  # undone and done again: once
        ([[1], [1], [1], [1]], [0, 0, 0]),  # held before anybody did anything
        ([[None], [0.99], [None], [1]], [0, 0, 1]),
    ],
)
def test_an_item_is_earned_once_by_the_turn_after_which_it_first_holds(
    scores: list[list[float | None]], expected: list[float]
) -> None:
    assert points(items({"id": "a"}), scores) == expected


def test_an_item_counts_once_what_it_comes_after_is_done() -> None:
    both = items({"id": "a"}, {"id": "b", "after": ["a"], "weight": 2})
    assert points(both, [[0, 0], [0, 1], [1, 1], [1, 1]]) == [0, 3, 0]
    assert points(both, [[0, 0], [0, 1], [1, 0], [1, 1]]) == [0, 1, 2]
    assert points(both, [[0, 0], [0, 1], [0, 1], [0, 1]]) == [0, 0, 0]


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, None])] * 3), min_size=1, max_size=6))
def test_no_list_gives_more_than_its_weights(rows: list[tuple[float | None, ...]]) -> None:
    three = items({"id": "a"}, {"id": "b", "weight": 0.5}, {"id": "c", "after": ["a", "b"]})
    assert 0 <= sum(points(three, [list(row) for row in rows])) <= 2.5


def test_what_is_done_is_not_looked_at_again() -> None:
    tally = Tally(items({"id": "a"}, {"id": "b"}), 1)
    tally.take({"a": 1.0, "b": 0.0})
    assert [item.id for item in tally.due()] == ["b"]


DONE = dialogue([T("tell:x"), T(call={}), T("stop")], 1.0, 0)
NOT_DONE = dialogue([T("stop")], 0.0, 1)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("turn", [[-0.5, 1.5, -0.5], [-0.5]]),
        ("exchange", [[-1, 2, 2], [-1]]),
        ("episode", [[1, 1, 1], [-1]]),
    ],
)
def test_who_earns_it_is_who_the_level_says(level: str, expected: list[list[float]]) -> None:
    # one point for the second turn: [0, 1, 0] and [0], in units as the level says
    units = {"turn": [0, 1, 0, 0], "exchange": [0, 1, 0], "episode": [1, 0]}[level]
    mean = sum(units) / len(units)
    deviation = (sum((u - mean) ** 2 for u in units) / (len(units) - 1)) ** 0.5
    unit = {"turn": 0.5, "exchange": 1 / 3, "episode": 0.5}[level]
    measured = {DONE.key: [0.0, 1.0, 0.0], NOT_DONE.key: [0.0]}
    spec = spec_of("checklist", baseline="mean", level=level, weight=0.5)
    episodes = [DONE, NOT_DONE]
    found = turn_advantages(episodes, rewards_of(episodes), spec, measured=measured)
    for credited, row in zip(found, expected, strict=True):
        assert credited is not None
        values = [credited.outcome + 0.5 * v * unit / deviation for v in row]
        assert credited.turns == pytest.approx(values, abs=1e-5)


def test_an_episode_that_was_not_looked_through_keeps_its_outcome() -> None:
    episodes = [DONE, NOT_DONE]
    measured = {DONE.key: [0.0, 1.0, 0.0]}
    found = turn_advantages(episodes, rewards_of(episodes), spec_of("checklist"), measured=measured)
    assert found[1] is not None
    assert found[1].turns == [found[1].outcome]


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ([{"id": "a"}, {"id": "a"}], "two items are called 'a'"),
        ([{"id": "a", "after": ["b"]}, {"id": "b"}], "no item above it"),
    ],
)
def test_a_list_out_of_order_is_refused(given_: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ChecklistCredit.model_validate({"items": [HELD | item for item in given_]})
