"""Quotas on axes: what has room, what no further wish can mend, and what loosening gives."""

from __future__ import annotations

from muarl.goals.axes import Quotas, histogram


def test_a_value_has_room_until_its_share_is_taken_and_one_that_is_not_named_has_none() -> None:
    quotas = Quotas({"writes": {1: 0.5, 2: 0.5}}, 4)
    for _ in range(2):
        assert quotas.full({"writes": 1}) == ""
        quotas.take({"writes": 1})
    assert quotas.full({"writes": 1}) == "writes"
    assert quotas.full({"writes": 2}) == ""
    assert quotas.full({"writes": 3}) == "writes"


def test_on_several_axes_each_value_has_a_fiftieth_more() -> None:
    quotas = Quotas({"writes": {1: 1.0}, "finds": {0: 0.5, 1: 0.5}}, 100)
    for _ in range(52):
        quotas.take({"writes": 1, "finds": 0})
    assert quotas.full({"writes": 1, "finds": 0}) == "finds"
    quotas.loosen()
    assert quotas.full({"writes": 1, "finds": 0}) == ""


def test_an_unfinished_task_is_hopeless_once_no_larger_value_has_room() -> None:
    quotas = Quotas({"writes": {0: 0.5, 2: 0.5}}, 2)
    assert quotas.passed({"writes": 1}) == ""
    assert quotas.passed({"writes": 3}) == "writes"
    quotas.take({"writes": 2})
    assert quotas.passed({"writes": 1}) == "writes"
    assert quotas.passed({"writes": 0}) == ""


def test_turns_may_become_fewer_with_further_wishes() -> None:
    quotas = Quotas({"turns": {4: 1.0}}, 2)
    assert quotas.passed({"turns": 5}) == ""


def test_values_are_counted_in_order() -> None:
    counted = histogram([{"writes": 2}, {"writes": 0}, {"writes": 2}])
    assert counted["writes"] == {0: 1, 2: 2}
    assert list(counted["writes"]) == [0, 2]
