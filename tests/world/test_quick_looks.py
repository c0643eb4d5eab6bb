"""What is only read costs nothing: forks, comparisons at a stroke, worlds on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.world import MapNode, World, canonical_diff, diff, equal

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, -0.0, "a"])
keys = st.sampled_from(["a", "b"])
json_values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=2) | st.dictionaries(keys, v, max_size=2), max_leaves=6
)


@settings(max_examples=60, deadline=None)
@given(json_values, json_values)
def test_plain_values_are_compared_as_the_worlds_that_hold_them(left: Any, right: Any) -> None:
    views = World({"at": left}), World({"at": right})
    views[0]["at"], views[1]["at"]  # now nodes, which are walked and not compared at a stroke
    assert equal(left, right) == equal(*views)


@pytest.mark.parametrize("value", [2**70, "\ud800", float("nan"), b"x"])
def test_what_is_no_json_is_equal_to_itself_in_plain_values(value: Any) -> None:
    assert equal({"a": [value]}, {"a": [value]})
    assert not equal({"a": [value]}, {"a": [0]})


def test_true_in_a_plain_list_is_not_one() -> None:
    assert not equal({"a": [1, True]}, {"a": [1, 1]})
    assert equal({"a": [1, 2]}, {"a": [1.0, 2]})


def test_a_fork_takes_what_was_written_and_leaves_what_was_only_read() -> None:
    world = World({"a": {"b": {"c": 1}, "d": [{"e": 1}, {"e": 2}]}, "f": {"g": {}}})
    world["f"]["g"], world["a"]["b"]["c"], world["a"]["d"][1]["e"]
    world["a"]["d"][0]["e"] = 5
    fork = world.fork()
    assert equal(fork, world)
    assert set(fork._over) == {"a"}
    assert set(fork._over["a"]._over) == {"d"}
    assert set(fork._over["a"]._over["d"]._over) == {0}


def test_a_difference_to_the_base_looks_at_what_was_written_only() -> None:
    class Watched(dict[str, Any]):
        looked: ClassVar[list[str]] = []

        def __getitem__(self, key: str) -> Any:
            self.looked.append(key)
            return super().__getitem__(key)

    orders = Watched({f"W{i}": {"status": "pending"} for i in range(100)})
    base = World({"orders": orders})
    fork = base.fork()
    fork._over["orders"] = MapNode(orders)
    fork["orders"]["W7"]["status"] = "sent"
    Watched.looked.clear()
    assert [str(change) for change in diff(base, fork)] == ["orders.W7.status: 'pending' -> 'sent'"]
    assert set(Watched.looked) <= {"W7"}


def test_a_world_on_disk_is_the_world(tmp_path: Path) -> None:
    base = World({"orders": {"W1": {"status": "pending", "price": 3}}, "log": []})
    world = base.fork()
    world["orders"]["W1"]["status"] = "sent"
    world["log"].append({"what": "é"})
    world.save(tmp_path / "world.json")
    again = base.restored(tmp_path / "world.json")
    assert equal(again, world)
    assert len(diff(base, again)) == 2
    with pytest.raises(FileExistsError):
        world.save(tmp_path / "world.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(msgspec.ValidationError):
        base.restored(tmp_path / "list.json")


BAGS = {"loans": {"id"}}
rows = st.lists(st.sampled_from(["B1", "B2", "B3"]), max_size=5)


def _loans(books: list[str], first: int = 1) -> dict[str, Any]:
    return {str(i): {"id": i, "book": book} for i, book in enumerate(books, first)}


@settings(max_examples=60, deadline=None)
@given(rows, rows, st.integers(1, 3))
def test_unordered_rows_differ_as_their_multisets_do(
    left: list[str], right: list[str], first: int
) -> None:
    worlds = World({"loans": _loans(left)}), World({"loans": _loans(right, first)})
    assert (canonical_diff(*worlds, BAGS) == []) == (sorted(left) == sorted(right))


def test_what_is_left_of_unordered_rows_is_named_by_its_key() -> None:
    base = World({"loans": _loans(["B1", "B2"]), "books": {"B1": {"state": "in"}}})
    other = base.fork()
    other["loans"]["2"] = {"id": 2, "book": "B3"}
    other["loans"]["3"] = {"id": 3, "book": "B2"}
    other["loans"]["4"] = {"id": 4, "book": "B4"}
    other["books"]["B1"]["state"] = "out"
    assert [str(change) for change in canonical_diff(base, other, BAGS)] == [
        "books.B1.state: 'in' -> 'out'",
        "loans.2: added {'id': 2, 'book': 'B3'}",
        "loans.4: added {'id': 4, 'book': 'B4'}",
    ]
