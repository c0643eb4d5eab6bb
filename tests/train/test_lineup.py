"""What is sampled ahead of learning, and how old it may be: in virtual time, and in every order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lineup_stage import Killed, World, differs, lags, plan

from muarl.record import Episode, EpisodeKey
from muarl.seeds import generator
from muarl.spec import RunSpec, TaskSpec
from muarl.testing import build_episode, run_in_virtual_time
from muarl.train.plan import BatchRecord, Pace
from muarl.train.rollouts import Draws, group_keys

PACES = st.one_of(
    st.just(Pace()),
    st.just(Pace(1)),
    st.builds(Pace, st.integers(1, 3), st.just(True), st.sampled_from(["wait", "drop", "correct"])),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    replacing: dict[str, Any] = {}
    if draw(st.booleans()):
        replacing = {"teaches": differs, "max_rounds": draw(st.integers(1, 3))}
    return World(
        plan(draw(st.integers(1, 6)), draw(st.integers(1, 4)), **replacing),
        draw(PACES),
        seed=draw(st.integers(0, 2**32)),
        slow=draw(st.sampled_from([0.0, 0.1, 0.5])),
        learn_s=draw(st.sampled_from([0.01, 1.0, 10.0])),
    )


def check(world: World) -> None:
    """The invariants of a run that is over."""
    assert sorted(world.trained) == list(range(world.plan.cohorts))
    learned: Counter[tuple[str, int, str]] = Counter()
    missing = 0
    for iteration, batch in world.trained.items():
        learned.update(group.key for group in batch.groups)
        missing += len(batch.record.missing)
        assert len(batch.groups) + len(batch.record.missing) == world.plan.wanted
        assert all(world.plan.teaches(group) for group in batch.groups)
        assert min(lags(batch), default=0) >= 0
        if world.pace.stale != "correct":
            assert max(lags(batch), default=0) <= world.pace.max_lag
            assert batch.stale == 0
        if not world.pace.in_flight:
            assert {group.key[1] for group in batch.groups} <= {iteration}
            assert lags(batch) <= {min(iteration, world.pace.max_lag)}
    assert set(learned.values()) <= {1}, "no group is learned from twice"
    assert learned.total() + missing == world.plan.cohorts * world.plan.wanted
    if world.plan.teaches is not differs:
        assert missing == 0
    keys = Counter(episode.key for episode in world.journal)
    assert set(keys.values()) <= {1}, "no dialogue is had twice"


@settings(max_examples=60)
@given(world=worlds())
def test_each_group_is_learned_from_once_and_none_lags_further_than_it_may(world: World) -> None:
    run_in_virtual_time(world.run)
    check(world)


@settings(max_examples=60)
@given(world=worlds(), kill_at_s=st.floats(0.0, 60.0), lost=st.integers(0, 3))
def test_L9_killed_at_any_moment_it_learns_from_the_same_again_and_goes_on(
    world: World, kill_at_s: float, lost: int
) -> None:
    """`lost`: iterations that were made since the checkpoint."""

    async def killed() -> None:
        await world.run(kill_at_s=kill_at_s)

    try:
        run_in_virtual_time(killed)
    except Killed:
        pass
    else:
        return
    before = {record.iteration: record for record in world.records}
    first = max(0, len(world.trained) - lost)

    async def taken_up() -> None:
        await world.run(first=first)

    run_in_virtual_time(taken_up)
    check(world)
    after = {record.iteration: record for record in world.records}
    for iteration, record in before.items():
        assert (after[iteration].groups, after[iteration].missing) == (
            record.groups,
            record.missing,
        )


def test_sampling_and_learning_overlap_within_the_bound_and_a_slow_tail_holds_nobody_up() -> None:
    """Ten iterations of 8 groups; one dialogue in ten takes twenty times as long; updates of 5 s."""
    seconds = {}
    for name, pace in {
        "on policy": Pace(),
        "one step off": Pace(1),
        "asynchronous": Pace(2, True),
    }.items():
        world = World(plan(10, 8), pace, seed=1, slow=0.1, learn_s=5.0)
        seconds[name] = run_in_virtual_time(world.run)
        check(world)
        overlapped = world.live_while_learning
        assert overlapped == 0 if name == "on policy" else overlapped > 20
    assert seconds["one step off"] < 0.95 * seconds["on policy"]
    assert seconds["asynchronous"] < seconds["on policy"] / 1.5


@pytest.mark.parametrize("stale", ["drop", "correct"])
def test_groups_that_are_too_old_are_counted_and_sampled_anew_or_learned_from(stale: Any) -> None:
    world = World(plan(12, 4), Pace(1, True, stale), seed=2, slow=0.1, learn_s=0.5)
    run_in_virtual_time(world.run)
    check(world)
    batches = world.trained.values()
    dropped = [group for batch in batches for group in batch.dropped]
    if stale == "drop":
        assert dropped
        # Each was learned from in the end, in dialogues of its own.
        learned = {group.key: group for batch in batches for group in batch.groups}
        for group in dropped:
            again = {episode.key for episode in learned[group.key].episodes}
            assert not again & {episode.key for episode in group.episodes}
    else:
        assert not dropped
        assert sum(batch.stale for batch in batches) > 0
        assert max(max(lags(batch)) for batch in batches) > 1


def test_a_batch_whose_dialogues_are_gone_from_the_journal_is_not_waited_for_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A power cut took the journal's end; what is sampled in its place teaches nothing."""
    world = World(plan(2, 2, teaches=differs, max_rounds=1), Pace(1, True), seed=3)
    run_in_virtual_time(world.run)
    world.journal, world.trained = [], {}
    world.seed = 11
    run_in_virtual_time(world.run)
    assert len(world.trained) == 2
    assert "learns from other groups than before" in caplog.text


def test_what_iterations_draw_by_what_became_of_others_is_drawn_again_when_taken_up_L9() -> None:
    """Lag 2: what iteration c draws is decided by the batches before update c - 2, whenever it is."""
    grpo = {"iterations": 8, "tasks_per_iteration": 3, "curriculum": {"half": {"waiting": 0.4}}}
    said = {"version": 1, "domain": "d", "model": {"tiny": {}}, "grpo": grpo}
    run = RunSpec.model_validate({**said, "rollout": {"group_size": 2}})
    pool = [
        TaskSpec(id=f"task-{n}", goal="g", personas=["p"], gold=[], split="train")
        for n in range(12)
    ]

    def outcome(record: BatchRecord) -> list[Episode]:
        return [
            build_episode(key, reward=generator(1, str(key)).choice([0.0, 1.0]))
            for name in record.groups
            for key in group_keys(run, *name)
        ]

    live = Draws(run, pool, 2)
    records: list[BatchRecord] = []
    done: dict[EpisodeKey, Episode] = {}
    drawn = {}
    for update in range(8):
        for ahead in range(update, min(update + 3, 8)):
            drawn.setdefault(ahead, live.tasks(ahead))
        record = BatchRecord(update, [(update, task_id, 0) for task_id in drawn[update]])
        records.append(record)
        episodes = outcome(record)
        done |= {episode.key: episode for episode in episodes}
        live.learned(update, episodes)
    for first in range(8):
        resumed = Draws(run, pool, 2)
        resumed.recall(records, done, first)
        for ahead in range(first, min(first + 3, 8)):
            assert resumed.tasks(ahead) == drawn[ahead]
    # Iterations that overlap do not all begin with the same ones that waited longest.
    assert len({task_id for ahead in range(3) for task_id in drawn[ahead][:2]}) == 6
    assert {task_id for order in drawn.values() for task_id in order} == {t.id for t in pool}
