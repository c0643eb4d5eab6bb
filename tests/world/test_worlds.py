"""Law L3: a dialogue's world is its own. Random documents and edits against plain Python data."""

from __future__ import annotations

import copy
import gc
import json
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from muarl.world import ListNode, MapNode, World, diff, equal, lookup, overwrite, plain

numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=4)
keys = st.sampled_from(["a", "b", "c", "1", "é"])
values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=3), max_leaves=8
)
documents = st.dictionaries(keys, values, max_size=4)


class Edit:
    """One random write, to do on a world and on plain data alike."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw

    def apply(self, *twins: Any) -> None:
        """Walk to the same random container in all twins, and write there."""
        while True:
            first = twins[-1]
            inner = first.items() if isinstance(first, dict) else enumerate(first)
            deeper = [key for key, value in inner if isinstance(value, (dict, list))]
            if not deeper or not self._draw(st.booleans()):
                break
            key = self._draw(st.sampled_from(deeper))
            twins = tuple(twin[key] for twin in twins)
        writes = _MAP_WRITES if isinstance(twins[-1], dict) else _LIST_WRITES
        name = self._draw(st.sampled_from(sorted(writes)))
        key, index, value = self._draw(keys), self._draw(st.integers(-3, 3)), self._draw(values)
        answers = [_tried(writes[name], twin, key, index, copy.deepcopy(value)) for twin in twins]
        assert all(equal(answer, answers[0]) for answer in answers), name


def _tried(write: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return plain(write(*arguments))
    except (KeyError, IndexError, ValueError) as error:
        return type(error).__name__


_MAP_WRITES: dict[str, Callable[[Any, str, int, Any], Any]] = {
    "set": lambda m, k, i, v: m.__setitem__(k, v),
    "del": lambda m, k, i, v: m.__delitem__(k),
    "pop": lambda m, k, i, v: m.pop(k),
    "pop or": lambda m, k, i, v: m.pop(k, v),
    "setdefault": lambda m, k, i, v: m.setdefault(k, v),
    "setdefault and write": lambda m, k, i, v: (
        m.setdefault(k, []).append(v) if isinstance(m.get(k, []), (list, ListNode)) else None
    ),
    "update": lambda m, k, i, v: m.update({k: v, "b": i}),
    "|=": lambda m, k, i, v: m.__ior__({k: v}),
    "|": lambda m, k, i, v: m | {k: v},
    "clear": lambda m, k, i, v: m.clear(),
    "delete while iterating": lambda m, k, i, v: [m.__delitem__(key) for key in list(m)],
    "write what a copy shares": lambda m, k, i, v: (
        [x.clear() for x in m.copy().values() if isinstance(x, (dict, list, MapNode, ListNode))]
        and None
    ),
    "move within": lambda m, k, i, v: m.__setitem__(k, m.pop("a", None)),
}
_LIST_WRITES: dict[str, Callable[[Any, str, int, Any], Any]] = {
    "set": lambda m, k, i, v: m.__setitem__(i, v),
    "set slice": lambda m, k, i, v: m.__setitem__(slice(i, None), [v, i]),
    "del": lambda m, k, i, v: m.__delitem__(i),
    "del slice": lambda m, k, i, v: m.__delitem__(slice(None, i)),
    "append": lambda m, k, i, v: m.append(v),
    "extend": lambda m, k, i, v: m.extend([v, i]),
    "+=": lambda m, k, i, v: m.__iadd__([v]),
    "+": lambda m, k, i, v: [operator.add(m, [v]), operator.add([v], m)],
    "insert": lambda m, k, i, v: m.insert(i, v),
    "pop": lambda m, k, i, v: m.pop(i),
    "remove first": lambda m, k, i, v: m.remove(m[0]),
    "reverse": lambda m, k, i, v: m.reverse(),
    "sort": lambda m, k, i, v: m.sort(key=lambda item: json.dumps(plain(item), sort_keys=True)),
    "clear": lambda m, k, i, v: m.clear(),
    "write into a slice": lambda m, k, i, v: (
        [x.clear() for x in m[i:] if isinstance(x, (dict, list, MapNode, ListNode))] and None
    ),
}


@settings(max_examples=200, deadline=None)
@given(document=documents, data=st.data())
def test_forks_behave_like_deep_copies_and_never_see_each_others_writes_L3(
    document: dict[str, Any], data: st.DataObject
) -> None:
    untouched = copy.deepcopy(document)
    worlds: list[World] = [World(document)]
    expected: list[dict[str, Any]] = [copy.deepcopy(document)]
    for _ in range(data.draw(st.integers(1, 8))):
        which = data.draw(st.integers(0, len(worlds) - 1))
        if data.draw(st.booleans()):  # a fork, or a fork of a fork
            worlds.append(worlds[which].fork())
            expected.append(copy.deepcopy(expected[which]))
        else:
            Edit(data).apply(worlds[which], expected[which])
        assert [plain(world) for world in worlds] == expected
        assert all(equal(w, e) and w == e for w, e in zip(worlds, expected, strict=True))
    assert document == untouched


def test_a_base_that_others_read_is_not_even_read_into_L3() -> None:
    base = World({"orders": {"W1": {"n": 1}}})
    fork = base.fork()
    fork["orders"]["W1"]["n"] = 2
    assert diff(base, fork)
    assert not base._over, "comparing left nodes in a world that all dialogues share"


def test_values_of_the_caller_are_copied_in_L3() -> None:
    world = World({"log": []})
    given_in: dict[str, Any] = {"items": [1]}
    world["order"] = given_in
    world["log"].append(given_in)
    world["log"][0:0] = [given_in]
    given_in["items"].append(2)
    assert plain(world) == {"order": {"items": [1]}, "log": [{"items": [1]}, {"items": [1]}]}


def test_values_moved_between_worlds_are_copied_L3() -> None:
    one, two = World({"a": {"x": [1]}}), World({})
    two["a"] = one["a"]
    two["a"]["x"].append(2)
    one["a"]["x"].append(3)
    assert (plain(one), plain(two)) == ({"a": {"x": [1, 3]}}, {"a": {"x": [1, 2]}})


def test_what_setdefault_returns_is_the_worlds_own_value_L3() -> None:
    world, log = World({}), []
    world.setdefault("log", log).append("written")
    assert plain(world) == {"log": ["written"]}
    assert log == []


def test_keys_deleted_while_iterating_do_not_come_again() -> None:
    world = World({"a": 1})
    world["b"] = world["c"] = 2
    seen = []
    for key in world:
        seen.append(key)
        world.clear()
    assert seen == ["a"]


def test_a_shallow_copy_does_not_share_its_slots_L3() -> None:
    world = World({"a": {"x": 1}, "l": [1]})
    twin, items = copy.copy(world["a"]), copy.copy(world["l"])
    twin["x"] = 2
    items.append(2)
    deep = copy.deepcopy(world["a"])
    deep["x"] = 3
    assert plain(world) == {"a": {"x": 1}, "l": [1]}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (2**64, "64 bits"),
        ("\ud800", "surrogate"),
        ({"a": {1: 2}}, "keys are text"),
        ({"a": {"\udfff": 2}}, "surrogate"),
        ({1, 2}, "set"),
        (b"raw", "bytes"),
        (object(), "object"),
    ],
)
def test_a_world_refuses_what_a_record_cannot_hold(value: Any, problem: str) -> None:
    world = World({"l": [0]})
    for write in (
        lambda: world.__setitem__("x", value),
        lambda: world["l"].append([value]),
        lambda: world["l"].__setitem__(0, {"deep": value}),
        lambda: world.fork({"x": value}),
    ):
        with pytest.raises(TypeError, match=problem):
            write()
    assert plain(world) == {"l": [0]}


def test_a_world_refuses_what_is_nested_without_end() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TypeError, match="nested deeper"):
        World({})["x"] = value


def test_keys_of_a_world_are_text() -> None:
    with pytest.raises(TypeError, match="keys are text"):
        World({})[5] = 1  # type: ignore[index]


# --- equality and differences -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 3}, {"a": 3.0}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": float("nan")}, {"a": float("nan")}),
        ({"a": 0.0}, {"a": -0.0}),
    ],
)
def test_what_json_does_not_tell_apart_is_equal_L3(left: Any, right: Any) -> None:
    assert equal(left, right)
    assert diff(left, right) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        ("1", 1),
        (None, 0),
        (None, {}),
        ([], {}),
        ("", []),
        ("ab", ["a", "b"]),
        ([1, 2], [2, 1]),
        (2**53 + 1, float(2**53)),
        ({"a": None}, {}),
    ],
)
def test_what_json_tells_apart_is_not_equal_L3(left: Any, right: Any) -> None:
    assert not equal({"x": left}, {"x": right})
    assert not equal(World({"x": left}), World({"x": right}))
    assert diff({"x": left}, {"x": right}) != []


def _edit_path(document: Any, path: str, write: Callable[[Any, Any], None]) -> None:
    *parents, last = path.split(".")
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document[part]
    write(document, int(last) if isinstance(document, list) else last)


@settings(max_examples=150, deadline=None)
@given(left=documents, right=documents, data=st.data())
def test_a_difference_is_empty_iff_equal_and_applied_to_left_gives_right_L3(
    left: dict[str, Any], right: dict[str, Any], data: st.DataObject
) -> None:
    one = World(left)
    if data.draw(st.booleans()):  # two forks of one base, the usual case
        two, right = one.fork(), copy.deepcopy(left)
        for _ in range(data.draw(st.integers(0, 3))):
            Edit(data).apply(two, right)
    else:
        two = World(right)
    changes = diff(one, two)
    assert changes == diff(left, right)
    assert (changes == []) == equal(one, two) == equal(two, one)

    patched = copy.deepcopy(left)
    for change in (c for c in changes if c.kind != "removed"):
        after = copy.deepcopy(change.after)
        _edit_path(
            patched,
            change.path,
            lambda at, key, after=after: (
                at.insert(key, after)
                if isinstance(at, list) and key == len(at)
                else at.__setitem__(key, after)
            ),
        )
    for change in reversed([c for c in changes if c.kind == "removed"]):
        _edit_path(patched, change.path, lambda at, key: at.__delitem__(key))
    assert equal(patched, right)
    befores = {c.path: c.before for c in changes}
    assert {c.path: c.after for c in diff(two, one)} == befores


def test_positions_are_in_the_order_of_numbers() -> None:
    changes = diff({"l": [0] * 12}, {"l": [1] * 12})
    assert [c.path for c in changes] == [f"l.{i}" for i in range(12)]


def test_a_change_explains_itself() -> None:
    before, after = {"a": 1, "b": {"x": "old"}}, {"b": {"x": "new"}, "c": [1]}
    assert [str(change) for change in diff(before, after)] == [
        "a: removed 1",
        "b.x: 'old' -> 'new'",
        "c: added [1]",
    ]


@settings(max_examples=100, deadline=None)
@given(left=documents, right=documents)
def test_overwriting_gives_the_state_and_writes_only_what_differs(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    world = World(left)
    overwrite(world, right)
    assert plain(world) == plain(right)
    clean = World(left).fork()
    overwrite(clean, copy.deepcopy(left))
    assert clean._is_unchanged()


@settings(max_examples=100, deadline=None)
@given(document=documents, data=st.data())
def test_pydantic_and_repr_see_plain_data(document: dict[str, Any], data: st.DataObject) -> None:
    world, expected = World(document).fork(), copy.deepcopy(document)
    Edit(data).apply(world, expected)
    assert TypeAdapter(Any).dump_python({"w": world}) == {"w": plain(world)} == {"w": expected}
    assert json.loads(TypeAdapter(Any).dump_json(world)) == json.loads(json.dumps(expected))
    assert repr(world) == repr(plain(world))


# --- lookup -------------------------------------------------------------------------------------


def test_lookup_walks_keys_and_positions() -> None:
    world = World({"orders": {"W1": {"items": ["lamp", {"n": 3}]}}})
    assert lookup(world, "orders.W1.items.1.n") == 3
    assert lookup(world, "orders.W1.items.0") == "lamp"


def test_lookup_finds_keys_that_hold_dots() -> None:
    world = World({"users": {"ann@post.net": {"age": 3}}})
    assert lookup(world, "users.ann@post.net.age") == 3


def test_a_key_in_quotes_is_found_as_differences_write_it() -> None:
    world = World({"v": {"1": {"2": "deep"}, "1.2": "whole", '"': "quote", "": {"": "empty"}}})
    assert lookup(world, "v.1.2") == "deep"
    assert lookup(world, 'v."1.2"') == "whole"
    for change in diff(World({"v": {}}), world):
        assert lookup(world, change.path) == change.after
    with pytest.raises(KeyError) as raised:
        lookup(world, 'v."1.3".x')
    assert raised.value.args == ('v."1.3"',)
    assert lookup({'"x': {"y": 1}}, '"x.y') == 1  # no quotes, for nothing closes them


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("orders.W2.n", "orders.W2"),
        ("orders.W1.n.x", "orders.W1.n.x"),
        ("orders.W1.l.3", "orders.W1.l.3"),
        ("orders.W1.l.-1", "orders.W1.l.-1"),
        ("orders.W1.l.x", "orders.W1.l.x"),
        ("", ""),
        ("orders.W1.s.0", "orders.W1.s.0"),
    ],
)
def test_lookup_names_what_is_not_there(path: str, missing: str) -> None:
    world = World({"orders": {"W1": {"n": 1, "l": [1], "s": "text"}}})
    with pytest.raises(KeyError) as raised:
        lookup(world, path)
    assert raised.value.args == (missing,)


# --- cost ---------------------------------------------------------------------------------------


def _objects_made(work: Callable[[], Any]) -> int:
    """Containers that are alive after `work` and were not before."""
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        kept = work()
        count = len(gc.get_objects()) - before
        del kept
        return count
    finally:
        gc.enable()


def _base(size: int) -> dict[str, Any]:
    return {
        "orders": {f"W{i}": {"status": "pending", "items": [{"n": i}]} for i in range(size)},
        "log": [{"at": i} for i in range(size)],
    }


def _one_dialogue(base: World) -> Callable[[], Any]:
    def work() -> Any:
        world = base.fork({"orders": {"NEW": {"status": "pending"}}})
        world["orders"]["W1"]["status"] = "cancelled"
        world["log"][1]["at"] = -1
        again = world.fork()
        again["orders"]["W2"]["items"][0]["n"] = 5
        return world, again, diff(base, again)

    return work


def test_a_fork_costs_the_same_whatever_the_size_of_the_base_L3() -> None:
    small, large = (_objects_made(_one_dialogue(World(_base(size)))) for size in (4, 4_000))
    assert small == large < 80


def test_a_fork_does_not_copy_what_was_only_read_L3() -> None:
    world = World(_base(1_000)).fork()
    for order in world["orders"].values():
        assert order["status"] == "pending"
    assert [line["at"] for line in world["log"]] == list(range(1_000))
    assert _objects_made(world.fork) < 10
