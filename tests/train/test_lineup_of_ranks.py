"""Several processes that share out the groups of a plan learn from what one would: in virtual time."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from lineup_stage import World, all_run, crews, differs, plan

from muarl.record import Episode
from muarl.testing import run_in_virtual_time
from muarl.train.plan import Pace


@st.composite
def worlds(draw: st.DrawFn) -> World:
    replacing: dict[str, Any] = {}
    if draw(st.booleans()):
        replacing = {"teaches": differs, "max_rounds": draw(st.integers(1, 3))}
    return World(
        plan(draw(st.integers(1, 5)), draw(st.integers(1, 5)), **replacing),
        draw(st.sampled_from([Pace(), Pace(1)])),
        seed=draw(st.integers(0, 2**32)),
        slow=draw(st.sampled_from([0.0, 0.3])),
    )


def learned(world: World) -> list[tuple[list[int], list[Episode]]]:
    batches = [world.trained[iteration] for iteration in sorted(world.trained)]
    return [(b.record.missing, [e for g in b.groups for e in g.episodes]) for b in batches]


def idle(world: World) -> list[tuple[int, str, int]]:
    """In all: one process may come to know a group that teaches nothing before its own iteration."""
    return sorted(name for batch in world.trained.values() for name in batch.record.idle)


@settings(max_examples=40)
@given(world=worlds(), size=st.integers(1, 4))
def test_L5_any_number_of_processes_learns_from_the_same_groups_in_the_same_order(
    world: World, size: int
) -> None:
    ranks = crews(world, size)
    run_in_virtual_time(world.run)
    run_in_virtual_time(lambda: all_run(ranks))
    assert len(world.trained) == world.plan.cohorts
    for rank in ranks:
        assert learned(rank) == learned(world)
        assert idle(rank) == idle(world)
    played = [episode.key for rank in ranks for episode in rank.journal]
    assert len(played) == len(set(played)), "no dialogue is had by two"
    assert set(played) == {episode.key for episode in world.journal}


@settings(max_examples=20)
@given(world=worlds(), size=st.integers(1, 4), done=st.integers(0, 4), lost=st.integers(0, 2))
def test_L9_another_number_of_processes_goes_on_with_the_same(
    world: World, size: int, done: int, lost: int
) -> None:
    """`lost`: iterations that were made since the checkpoint."""
    run_in_virtual_time(world.run)
    made = min(done, world.plan.cohorts)
    first = max(0, made - lost)
    # Weights change only while nothing is sampled: by then the dialogues ahead were had, too.
    had = made + world.pace.max_lag if made else 0
    before = [e for e in world.journal if e.key.iteration < had]
    ranks = crews(world, size)
    for rank in ranks:
        rank.journal += before
        rank.records = [record for record in world.records if record.iteration < made]
    run_in_virtual_time(lambda: all_run(ranks, first=first))
    for rank in ranks:
        assert learned(rank) == learned(world)[first:]
    played = [e.key for rank in ranks for e in rank.journal[len(before) :]]
    assert len(played) == len(set(played)), "no dialogue is had by two"
    assert not {e.key for e in before} & set(played), "no dialogue is had twice"
