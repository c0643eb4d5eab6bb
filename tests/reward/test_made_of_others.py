"""Predicates made of others: all, any, not, and a success that side terms lessen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from test_checks import judged

from muarl.spec import PredicateSpec

YES: dict[str, Any] = {"gold_world": True}
NO: dict[str, Any] = {"gold_world": False}
NEITHER: dict[str, Any] = {"confirmed": {}}


def share(value: float) -> tuple[dict[str, Any], Any]:
    """A predicate with a score of its own, and what finds its function."""
    return {
        "python": {"function": "c.py:f", "arguments": {"value": value}}
    }, lambda _: lambda _, value: value


@pytest.mark.parametrize(
    ("spec", "score"),
    [
        ({"all": [YES, YES]}, 1),
        ({"all": [YES, NO]}, 0),
        ({"all": [YES, NEITHER]}, 1),
        ({"all": [NEITHER]}, None),
        ({"any": [NO, YES]}, 1),
        ({"any": [NO, NO]}, 0),
        ({"any": [NO, NEITHER]}, 0),
        ({"any": [NEITHER]}, None),
        ({"share": [YES, NO, NO, YES]}, 0.5),
        ({"share": [YES, NEITHER]}, 1),
        ({"share": [{"share": [YES, NO]}, YES]}, 0.75),
        ({"share": [NEITHER]}, None),
        ({"not": NO}, 1),
        ({"not": YES}, 0),
        ({"not": NEITHER}, None),
        ({"not": {"any": [NO, {"all": [YES, {"not": YES}]}]}}, 1),
    ],
)
def test_what_is_made_of_others(spec: dict[str, Any], score: float | None) -> None:
    assert judged(spec).score == score


def test_a_part_that_decides_is_named_with_its_reason() -> None:
    result = judged({"all": [YES, {"not": {"never_called": {"tool": "look"}}}]})
    assert result.name == "all (gold_world, not never_called look)"
    assert result.reason == ("not never_called look: never_called look: look was called 0 times")


def test_a_share_says_what_it_lacks() -> None:
    result = judged({"share": [YES, {"called": {"tool": "look"}}]})
    assert result.name == "share", "whatever it is made of: one name, one mean"
    assert result.reason == "1 of 2 hold; called look: look was not called successfully"


def test_what_a_part_leaves_out_the_whole_leaves_out() -> None:
    spec = {"python": {"function": "c.py:f"}}
    found = judged(
        {"all": [{"not": {"any": [spec, NO]}}, {"share": [spec, YES]}]},
        load=lambda _: lambda _: (1.0, "as far as one can see", "nobody judged it"),
    )
    assert found.caveat == "nobody judged it"
    assert judged(YES).caveat == ""


@pytest.mark.parametrize(
    ("success", "sides", "cap", "score"),
    [
        (YES, [(0.2, YES), (0.1, YES)], 0, 1.0),
        (YES, [(0.2, NO), (0.1, YES)], 0, 0.8),
        (YES, [(0.2, NO), (0.1, NEITHER)], 0, 0.8),
        (YES, [(0.2, NO), (0.1, NO)], 0, 0.7),
        (NO, [(0.2, YES), (0.1, YES)], 0, 0.0),
        (NO, [(0.2, YES), (0.1, NO)], 0.25, 0.2),
        (NO, [(0.2, YES), (0.1, YES)], 0.25, 0.25),
        (NEITHER, [(0.2, YES)], 0, 0.0),
    ],
)
def test_side_terms_lessen_a_success(
    success: Any, sides: list[tuple[float, Any]], cap: float, score: float
) -> None:
    terms = [{"weight": weight, "when": when} for weight, when in sides]
    spec = {"weighted": {"success": success, "side": terms, "failure_cap": cap}}
    assert judged(spec).score == pytest.approx(score)


weights = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4)
scores = st.floats(0, 1)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), weights=weights, cap=st.floats(0, 0.99), partial=st.floats(0, 0.999))
def test_no_failure_is_worth_as_much_as_any_success(
    data: st.DataObject, weights: list[float], cap: float, partial: float
) -> None:
    """Whatever the side terms find: either the file is refused, or every failure is below."""

    def spec(success: float) -> tuple[dict[str, Any], Any]:
        sides = [{"weight": weight, "when": share(data.draw(scores))[0]} for weight in weights]
        main, load = share(success)
        return {"weighted": {"success": main, "side": sides, "failure_cap": cap}}, load

    try:
        good, bad = spec(1.0), spec(partial)
        PredicateSpec.model_validate(good[0])
    except ValidationError:
        assert sum(weights) + cap >= 1 - 1e-9
        return
    best, worst = judged(good[0], load=good[1]), judged(bad[0], load=bad[1])
    assert best.score is not None
    assert worst.score is not None
    assert 0 <= worst.score < best.score <= 1


def test_side_terms_that_could_outweigh_a_success_are_refused_at_load() -> None:
    sides = [{"weight": 0.4, "when": YES}, {"weight": 0.3, "when": YES}]
    message = "a success may earn as little as 0.3 and a failure as much as 0.3"
    with pytest.raises(ValidationError, match=message):
        PredicateSpec.model_validate(
            {"weighted": {"success": YES, "side": sides, "failure_cap": 0.3000001}}
        )
