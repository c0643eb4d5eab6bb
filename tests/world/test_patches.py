"""What was changed in a world is enough to make it again, whatever its keys are called."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.world import Change, World, apply_changes, diff, equal, plain

KEYS = st.sampled_from(["a", "b", "a.b", "", "0", "1", '"', '"a"', "\\", "a b", "é.", ".", "a\n."])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS, v, max_size=4), max_leaves=12
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@settings(max_examples=300, deadline=None)
@given(before=DOCUMENTS, after=DOCUMENTS)
def test_the_changes_between_two_worlds_make_the_second_of_the_first(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    original = copy.deepcopy(before)
    changes = diff(before, after)
    world = World(before)
    apply_changes(world, changes)
    assert equal(world, after)
    assert plain(world) == after
    assert before == original, "the base is not written"
    assert len({change.path for change in changes}) == len(changes), "a path names one place"


def test_a_key_with_a_dot_is_told_from_a_key_below_another() -> None:
    before: dict[str, Any] = {"a": {"b": 1}, "a.b": 1}
    for after in ({"a": {"b": 1}, "a.b": 2}, {"a": {"b": 2}, "a.b": 1}):
        world = World(before)
        apply_changes(world, diff(before, after))
        assert plain(world) == after


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (Change("a", 2, 3, "changed"), "a: there is 1; it was 2"),
        (Change("a", 2, None, "removed"), "a: there is 1; it was 2"),
        (Change("a", None, 3, "added"), "a: nothing could be added there"),
        (Change("x", 1, 3, "changed"), "x: there is no 'x'"),
        (Change("x.y", None, 3, "added"), "x.y: there is no 'x'"),
        (Change("a.y", None, 3, "added"), "a.y: nothing could be added there"),
        (Change("l.3", None, 3, "added"), "l.3: nothing could be added there"),
        (Change("l.x", None, 3, "added"), "l.x: nothing could be added there"),
        (Change("l.2", 1, 3, "changed"), "l.2: there is no '2'"),
        (Change("l..1", 1, 3, "changed"), "'l..1' is no path of a change"),
        (Change("", 1, 3, "changed"), "'' is no path of a change"),
    ],
)
def test_a_world_that_is_not_the_one_from_before_is_refused(change: Change, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        apply_changes(World({"a": 1, "l": [1, 2]}), [change])
