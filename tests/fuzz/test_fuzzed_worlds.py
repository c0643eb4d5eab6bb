"""Whatever is done to a world, it stays a JSON document that its forks and its base do not see.

A world is compared with plain Python data to which the same was done; what it differs in from where
it came from is enough to make it again.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from fuzz_tally import TALLIES
from hostile import TEXTS, values
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from muarl.json_values import json_problem
from muarl.spec.load import load_domain_spec
from muarl.spec.sql_seed import load_database
from muarl.world import Change, World, apply_changes, canonical_diff, diff, equal, lookup, plain
from muarl.world.sql import RowError, SqlWorld

TALLY = TALLIES["worlds"]
LIBRARY = Path(__file__).parents[2] / "domains" / "library"

keys = st.sampled_from([text for text in TEXTS if len(text) < 50 and json_problem(text) is None])
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | keys
json_values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=4) | st.dictionaries(keys, v, max_size=4), max_leaves=10
)
documents = st.dictionaries(keys, json_values, max_size=5)

Write = Callable[[Any, Any, Any], Any]
_MAP: dict[str, Write] = {
    "set": lambda m, k, v: m.__setitem__(k, v),
    "delete": lambda m, k, v: m.pop(k, None),
    "default": lambda m, k, v: m.setdefault(k, v),
    "update": lambda m, k, v: m.update({k: v}),
    "clear": lambda m, k, v: m.clear(),
}
_LIST: dict[str, Write] = {
    "set": lambda m, k, v: m.__setitem__(0, v) if m else None,
    "append": lambda m, k, v: m.append(v),
    "insert": lambda m, k, v: m.insert(len(k) % 3, v),
    "delete": lambda m, k, v: m.pop() if m else None,
    "reverse": lambda m, k, v: m.reverse(),
}


def fuzz(data: st.DataObject) -> None:
    """Write into forks of a document, or rows into tables, and look at all that there is."""
    if data.draw(st.integers(0, 3)) == 0:
        fuzz_rows(data)
    else:
        fuzz_document(data)


def fuzz_document(data: st.DataObject) -> None:
    document = data.draw(documents)
    untouched = copy.deepcopy(document)
    with TALLY.one(document):
        base = World(document)
        world, sibling, twin = base.fork(), base.fork(), copy.deepcopy(document)
        for _ in range(data.draw(st.integers(1, 6))):
            write(data, world, twin)
            if data.draw(st.booleans()):
                world = world.fork()
        assert same(plain(world), twin)
        assert same(plain(sibling), document)
        assert document == untouched, "the base was written"
        check_one(world, twin)
        check_two(base, world)
    TALLY.note("documents")


def write(data: st.DataObject, world: Any, twin: Any) -> None:
    """Do one thing to both, at the same random place; what is no JSON is refused by the world."""
    while True:
        items = twin.items() if isinstance(twin, dict) else enumerate(twin)
        deeper = [key for key, value in items if isinstance(value, (dict, list))]
        if not deeper or not data.draw(st.booleans()):
            break
        key = data.draw(st.sampled_from(deeper))
        world, twin = world[key], twin[key]
    do = data.draw(st.sampled_from(list((_MAP if isinstance(twin, dict) else _LIST).values())))
    key, value = data.draw(keys), data.draw(json_values | values())
    if problem := json_problem(value):
        before = copy.deepcopy(twin)
        try:
            do(world, key, value)
        except TypeError:
            TALLY.note("values refused")
            assert same(plain(world), before), problem
            return
        # Nothing was taken in, for instance where the key was there already.
        assert json_problem(plain(world)) is None, problem
        do(twin, key, copy.deepcopy(value))
        assert same(plain(world), twin), problem
        return
    do(world, key, value)
    do(twin, key, copy.deepcopy(value))


def check_one(world: World, twin: Any) -> None:
    """A world is its document, however that is written."""
    assert json_problem(twin) is None
    assert equal(world, twin)
    assert equal(twin, world)
    shuffled = json.loads(json.dumps(twin, sort_keys=True))
    assert equal(world, shuffled), "keys have no order"
    assert canonical_diff(world, shuffled, {}) == []
    assert equal(world, as_floats(twin)), "3 is 3.0"
    assert same(msgspec.msgpack.decode(msgspec.msgpack.encode(plain(world))), twin)
    for change in diff({}, world):
        assert equal(lookup(world, change.path), change.after)


def check_two(before: World, after: World) -> None:
    """What two worlds differ in makes each of the other."""
    for left, right in ((before, after), (after, before)):
        changes = diff(left, right)
        assert bool(changes) != equal(left, right)
        assert all(str(change) for change in changes)
        made = left.fork()
        apply_changes(made, changes)
        assert equal(made, right)
        assert same(diff(left, made), changes)
        packed = msgspec.msgpack.encode(changes)
        assert same(msgspec.msgpack.decode(packed, type=list[Change]), changes)


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same kinds: neither 1 and true are, nor 1 and 1.0."""
    return bool(left == right) and repr_sorted(left) == repr_sorted(right)


def repr_sorted(value: Any) -> str:
    if isinstance(value, dict):
        return repr(sorted((key, repr_sorted(item)) for key, item in value.items()))
    return repr([repr_sorted(item) for item in value]) if isinstance(value, list) else repr(value)


def as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if whole else value


@cache
def library() -> SqlWorld:
    return SqlWorld(load_database(load_domain_spec(LIBRARY)))


def fuzz_rows(data: st.DataObject) -> None:
    base = library()
    rows = {name: list(base[name]) for name in base}
    names = st.sampled_from([*rows, "book", "sqlite_schema", ""])
    patch: dict[Any, Any] = {}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(names)
        known = rows.get(name, [])
        key = data.draw((st.sampled_from(known) if known else keys) | keys)
        columns = st.sampled_from(["mark", "card", "title", "name", "fines", "due", "id", "x", ""])
        row = st.dictionaries(columns, values(1) | keys, max_size=4) | st.none() | values(2)
        patch.setdefault(name, {})[key] = data.draw(row)
    if data.draw(st.integers(0, 5)) == 0:
        patch[data.draw(names)] = data.draw(values(2))
    before = plain(base)
    with TALLY.one(patch):
        try:
            world = base.fork(patch)
        except RowError:
            TALLY.note("rows refused")
            assert same(plain(base), before)
            return
        TALLY.note("rows taken")
        assert same(plain(base), before)
        assert json_problem(plain(world)) is None
        found = {name: world.query(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in world}
        assert found == {name: len(world[name]) for name in world}, (
            "tables hold what the world does"
        )
        check_two(base, world)


@settings(max_examples=100, deadline=None, phases=[Phase.generate], database=None)
@given(data=st.data())
def test_forks_are_documents_of_their_own_that_their_changes_make_again(
    data: st.DataObject,
) -> None:
    fuzz(data)
