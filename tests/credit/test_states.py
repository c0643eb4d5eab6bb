"""States from the record are those of the worlds themselves."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.credit.states import states_before_turns
from muarl.record import Episode, UserReply
from muarl.testing.episodes import build_episode
from muarl.world import World, diff, equal

scalars = st.sampled_from([0, 1, 1.0, True, False, None, "", "x", "a.b"])
keys = st.sampled_from(["a", "b", "a.b", "", '"'])
documents = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(keys, below, max_size=3),
    max_leaves=8,
)
worlds = st.dictionaries(keys, documents, max_size=3)


def through(start: dict[str, Any], stops: list[dict[str, Any]]) -> Episode:
    """An episode whose turns bring the world to each of these in turn."""
    episode = build_episode(num_turns=len(stops) + 1, opening=UserReply("hello"))
    for turn, (before, after) in zip(
        episode.turns, zip([start, *stops], stops, strict=False), strict=False
    ):
        turn.changes = diff(World(copy.deepcopy(before)), World(copy.deepcopy(after)))
    return episode


@given(start=worlds, one=st.lists(worlds, max_size=3), two=st.lists(worlds, max_size=3))
@settings(max_examples=150)
def test_two_states_are_equal_where_the_worlds_are(
    start: dict[str, Any], one: list[dict[str, Any]], two: list[dict[str, Any]]
) -> None:
    ours = list(zip([start, *one], states_before_turns(through(start, one)), strict=True))
    theirs = list(zip([start, *two], states_before_turns(through(start, two)), strict=True))
    for here, state in ours:
        for there, other in theirs:
            assert (state == other) == equal(World(here), World(there))


def test_what_the_user_does_on_her_device_is_seen_by_the_next_turn() -> None:
    episode = build_episode(num_turns=2)
    change = diff(World({"device": {"on": False}}), World({"device": {"on": True}}))
    first = episode.turns[0]
    first.reply = UserReply("done", changes=change)
    assert states_before_turns(episode)[0] == frozenset()
    assert states_before_turns(episode)[1] != frozenset()
