"""What two splits must not share is found wherever it lies, and what all tasks share is none of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.data.proof.entities import Entities
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec
from muarl.world import World

NESTED = {"shop": {"orders": {"W1": {"status": "sent"}, "W2": {"status": "new"}}, "open": True}}
LISTED = {"graph": {"entities": [{"name": "Ada B.", "kind": "c"}, {"name": "Tom R.", "kind": "c"}]}}
OWNED = {"users": {"U1": {"orders": {"W1": {"status": "sent"}}, "address": {"city": "Rome"}}}}


def task(name: str = "t", facts: dict[str, str] | None = None, **changes: Any) -> TaskSpec:
    ledger = [FactSpec(id=key, value=value) for key, value in (facts or {}).items()]
    user = UserGoalSpec(requests=[RequestSpec(ask="x", facts=ledger)])
    return TaskSpec(**{"id": name, "goal": "", "user": user, "gold": [], **changes})


def called(**arguments: Any) -> list[GoldCallSpec]:
    return [GoldCallSpec(tool="t", arguments=arguments)]


def entities(base: dict[str, Any], one: TaskSpec, *others: TaskSpec) -> set[str]:
    return Entities(World(base), [one, *others]).of(one)


@pytest.mark.parametrize(
    ("base", "named", "found"),
    [
        ({"orders": {"W1": {}}}, called(order="W1", city="Rome"), {"W1"}),
        ({"orders": {"W1": {}}}, called(orders=["W0", "W1"]), {"W1"}),
        ({"orders": {"W1": {}}}, called(items=[{"in": {"order": "W1"}}]), {"W1"}),
        ({"orders": {"W1": {}}}, called(order="w1"), {"w1"}),
        (NESTED, called(order="W1"), {"W1"}),
        (NESTED, called(what="orders", of="shop"), set()),
        (LISTED, called(deletions=[{"entityName": "Ada B.", "kind": "c"}]), {"Ada B."}),
        (OWNED, called(user="U1", field="address", order="W1", city="Rome"), {"U1", "W1"}),
        ({"orders": [{"status": "new"}, {"status": "sent"}]}, called(to="sent"), {"sent"}),
        ({"orders": [{"status": "new"}, {"status": "new"}]}, called(to="new"), set()),
        ({"loans": {"7": {}}}, called(days=7), set()),
        ({"loans": {"7": {}}}, called(loan=7), {"7"}),
        ({"loans": {"7": {}}}, called(id="7"), {"7"}),
        ({"device": {"sim": {"x": {}}}}, called(part="sim", of="x"), set()),
    ],
)
def test_a_record_is_found_wherever_world_and_calls_have_it(
    base: dict[str, Any], named: list[GoldCallSpec], found: set[str]
) -> None:
    assert entities(base, task(gold=named)) == found


def test_facts_name_records_too_and_what_she_turns_to() -> None:
    instead = RequestSpec(ask="y", facts=[FactSpec(id="order", value="W2")])
    asked = RequestSpec(ask="x", facts=[FactSpec(id="order", value="W1")], instead=instead)
    assert entities(NESTED, task(user=UserGoalSpec(requests=[asked]))) == {"W1", "W2"}


@pytest.mark.parametrize(
    ("world", "found"),
    [
        ({"orders": {"W9": {"status": "new"}}}, {"W9"}),
        ({"shop": {"orders": {"W9": {"status": "new"}}}}, {"W9"}),
        ({"users": {"U1": {"orders": {"W9": {}}, "address": {"city": "Rome"}}}}, {"U1", "W9"}),
        ({"orders": [{"order_id": "W9", "days": 1}]}, {"W9"}),
        ({"orders": {"W9": {"history": [{"step": "packed"}, {"step": "sent"}]}}}, {"W9"}),
        ({"device": {"sim": {"x": {}}}}, set()),
    ],
)
def test_records_that_a_task_brings_along_are_its_entities(
    world: dict[str, Any], found: set[str]
) -> None:
    assert entities({}, task(world=world)) == found


@pytest.mark.parametrize(
    "lines",
    [{"item 1": {"count": 1}, "mug": {"count": 2}}, [{"name": "mug", "count": 2}], ["mug"]],
)
def test_what_many_records_hold_belongs_to_none(lines: Any) -> None:
    one, other = (
        task(order, {"item": "mug", "answer": "yes"}, world={"orders": {order: {"lines": lines}}})
        for order in ("W1", "W2")
    )
    assert entities({}, one, other) == {"W1"}


json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["W1", "id", "mug", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["W1", "id", "name", "orders", ""]), inner, max_size=3)
    ),
    max_leaves=12,
)
worlds = st.dictionaries(st.sampled_from(["orders", "graph", "a"]), json, max_size=3)


@given(worlds, worlds, worlds)
def test_any_world_and_any_call_have_entities(
    base: dict[str, Any], brought: dict[str, Any], arguments: dict[str, Any]
) -> None:
    one = task(world=brought, gold=[GoldCallSpec(tool="t", arguments=arguments)])
    assert all(isinstance(name, str) for name in entities(base, one))


def test_records_of_a_catalogue_belong_to_the_tasks_of_all_splits() -> None:
    base = {"classes": {"Yoga": {"day": "mo"}}, "members": {"Ada": {"card": 1}}}
    one = task(gold=called(member="Ada", of="Yoga"), world={"classes": {"Spin": {"day": "tu"}}})
    found = Entities(World(base), [one], ["classes"])
    assert found.of(one) == {"Ada"}
    assert found.parts == {"classes", "members"}
    assert Entities(World(base), [one]).of(one) == {"Ada", "Yoga", "Spin"}
