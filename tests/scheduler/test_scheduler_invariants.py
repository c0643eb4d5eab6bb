"""The scheduler's numbered invariants, over random plays in virtual time."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_stage import Act, Stage, plan_keys

from muarl.errors import FaultRateError
from muarl.record import Episode, EpisodeKey, Outcome
from muarl.scheduler import Group, Limits, run_groups
from muarl.testing import build_episode, run_in_virtual_time

# Time is virtual here; a busy machine must not fail an example for its wall time.
whatever_the_machine = settings(deadline=None, max_examples=60)

DEADLINE_S = 10.0

OUTCOMES = st.sampled_from([*Outcome, *[Outcome.COMPLETED] * 6])
# Above the deadline too, and many equal ones, so that things happen at the same instant.
DURATIONS = st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0, 9.0, 10.5, 50.0])
ACTS = st.lists(st.builds(Act, DURATIONS, OUTCOMES), min_size=1, max_size=4)


@st.composite
def plays(draw: st.DrawFn) -> tuple[list[EpisodeKey], dict[EpisodeKey, list[Act]], Limits]:
    keys = plan_keys(draw(st.integers(0, 7)), draw(st.integers(1, 5)))
    acts = {key: draw(ACTS) for key in keys}
    limits = Limits(
        concurrency=draw(st.integers(1, 9)),
        deadline_s=DEADLINE_S,
        attempts=draw(st.integers(1, 3)),
        max_fault_rate=1.0,
        buffer_groups=draw(st.integers(0, 3)),
        retry_wait_s=draw(st.sampled_from([0.0, 1.0])),
    )
    return keys, acts, limits


def final_outcome(acts: list[Act], attempts: int) -> tuple[Outcome, int]:
    """What a key must end in, and with how many attempts: the scheduler's rule in plain words."""
    for attempt in range(1, attempts + 1):
        act = acts[min(attempt, len(acts)) - 1]
        outcome = Outcome.INFRA_FAULT if act.seconds > DEADLINE_S else act.outcome
        if not outcome.is_fault:
            return outcome, attempt
    return outcome, attempts


@whatever_the_machine
@given(play=plays(), pause=st.sampled_from([0.0, 4.0]))
def test_every_dialogue_ends_once_within_the_cap_and_comes_in_its_whole_group(
    play: Any, pause: float
) -> None:
    keys, acts, limits = play
    stage = Stage(acts)

    async def main() -> list[Group]:
        got = []
        async with run_groups(
            keys, stage.run_dialogue, limits=limits, journal=stage.journal
        ) as groups:
            async for group in groups:
                stage.check_journaled(group, {})  # 5
                got.append(group)
                await anyio.sleep(pause)
        return got

    got = run_in_virtual_time(main)
    assert stage.live == 0  # 9
    assert stage.most_live <= limits.concurrency  # 2
    assert sorted(stage.journal.keys, key=str) == sorted(keys, key=str)  # 1
    assert len({group.key for group in got}) == len(got)  # 4
    members = {group.key: [episode.key for episode in group.episodes] for group in got}
    assert members == {
        key.group: [other for other in keys if other.group == key.group] for key in keys
    }
    for group in got:  # 3, 6, 7
        for episode in group.episodes:
            outcome, tries = final_outcome(acts[episode.key], limits.attempts)
            assert episode.outcome is outcome
            started = [plan.attempt for plan in stage.started if plan.key == episode.key]
            assert started == list(range(1, tries + 1))


@whatever_the_machine
@given(play=plays())
def test_the_cap_is_used_to_the_full(play: Any) -> None:
    keys, acts, limits = play
    # Few start in each pass of the loop; one that ends in its first pass makes room for the next.
    slow = {k: [Act(max(act.seconds, 0.5), act.outcome) for act in acts[k]] for k in keys}
    stage = Stage(slow)
    run_in_virtual_time(stage.run_all, keys, limits)
    assert stage.most_live == min(limits.concurrency, len(keys))


@whatever_the_machine
@given(play=plays(), data=st.data())
def test_a_resumed_run_gives_the_same_groups_and_runs_only_what_was_missing(
    play: Any, data: st.DataObject
) -> None:
    keys, acts, limits = play
    whole = run_in_virtual_time(Stage(acts).run_all, keys, limits)
    done = {
        episode.key: episode
        for group in whole
        for episode in group.episodes
        if data.draw(st.booleans())
    }
    stage = Stage(acts)

    async def resume() -> list[Group]:
        return await stage.run_all(keys, limits, done=done)

    resumed = run_in_virtual_time(resume)
    assert sorted(resumed, key=lambda g: g.key) == sorted(whole, key=lambda g: g.key)
    assert {plan.key for plan in stage.started} == set(keys) - set(done)
    assert set(stage.journal.keys) == set(keys) - set(done)


@whatever_the_machine
@given(play=plays(), after_s=st.sampled_from([0.0, 0.5, 1.0, 2.0, 9.0, 20.0]))
def test_a_drain_lets_the_live_finish_and_names_what_is_left(play: Any, after_s: float) -> None:
    keys, acts, limits = play
    stage = Stage(acts)
    started_before: list[int] = []

    async def main() -> tuple[list[Group], list[EpisodeKey]]:
        async with (
            run_groups(keys, stage.run_dialogue, limits=limits, journal=stage.journal) as groups,
            anyio.create_task_group() as clock,
        ):

            async def drain() -> None:
                await anyio.sleep(after_s)
                await anyio.wait_all_tasks_blocked()
                groups.stop_admitting()
                started_before.append(len(stage.started))

            clock.start_soon(drain)
            got = [group async for group in groups]
            clock.cancel_scope.cancel()
        return got, groups.unfinished()

    got, left = run_in_virtual_time(main)
    if started_before:
        assert len(stage.started) == started_before[0]
    # Only deadlines cut dialogues, never the drain.
    too_long = {key for key in keys if any(act.seconds > DEADLINE_S for act in acts[key])}
    assert set(stage.cut) <= too_long
    assert left == [key for key in keys if key not in set(stage.journal.keys)]
    whole = {key.group for key in keys} - {key.group for key in left}
    assert {group.key for group in got} == whole


@whatever_the_machine
@given(play=plays(), at_s=st.sampled_from([0.0, 0.5, 1.0, 3.0, 5.0]))
def test_leaving_early_by_an_exception_leaves_nothing_alive_and_no_finished_episode_unwritten(
    play: Any, at_s: float
) -> None:
    keys, acts, limits = play
    stage = Stage(acts)
    finished: list[EpisodeKey] = []

    async def noting(plan: Any) -> Episode:
        episode = await stage.run_dialogue(plan)
        finished.append(plan.key)
        return episode

    async def main() -> None:
        with anyio.move_on_after(at_s):
            async with run_groups(keys, noting, limits=limits, journal=stage.journal) as groups:
                async for _ in groups:
                    await anyio.sleep(1.0)
        assert stage.live == 0

    run_in_virtual_time(main)
    journaled = set(stage.journal.keys)
    for key in set(finished):
        attempts = sum(plan.key == key for plan in stage.started)
        outcomes = [acts[key][min(n, len(acts[key])) - 1].outcome for n in range(1, attempts + 1)]
        if any(not outcome.is_fault for outcome in outcomes[: finished.count(key)]):
            assert key in journaled


@whatever_the_machine
@given(
    rate=st.sampled_from([0.0, 0.1, 0.5]),
    faulty=st.lists(st.booleans(), min_size=70, max_size=150),
    concurrency=st.sampled_from([1, 7, 200]),
)
def test_the_fuse_blows_as_the_plain_rule_says(
    rate: float, faulty: list[bool], concurrency: int
) -> None:
    keys = plan_keys(len(faulty), 1)
    # Longer by one second each, so that with any concurrency the order of ends is the plan's.
    acts = {
        key: [Act(1.0 + i / 1000, Outcome.INFRA_FAULT if bad else Outcome.COMPLETED)]
        for i, (key, bad) in enumerate(zip(keys, faulty, strict=True))
    }
    limits = Limits(concurrency=concurrency, attempts=1, max_fault_rate=rate)
    window = max(64, concurrency)
    blows_at = next(
        (
            i
            for i in range(63, len(faulty))
            if faulty[i] and sum(faulty[max(0, i + 1 - window) : i + 1]) > rate * window
        ),
        None,
    )
    stage = Stage(acts)

    async def main() -> bool:
        try:
            await stage.run_all(keys, limits)
        except FaultRateError:
            return True
        return False

    assert run_in_virtual_time(main) is (blows_at is not None)
    if blows_at is not None:
        assert stage.journal.keys == keys[:blows_at]
        assert stage.live == 0


def test_one_dialogue_is_retried_while_others_go_on() -> None:
    keys = plan_keys(2, 2)
    stage = Stage({keys[0]: [Act(1.0, Outcome.INFRA_FAULT), Act(1.0)], keys[1]: [Act(5.0)]})

    async def main() -> tuple[list[Group], float]:
        got = await stage.run_all(keys, Limits(concurrency=2))
        return got, anyio.current_time()

    got, seconds = run_in_virtual_time(main)
    assert [plan.attempt for plan in stage.started if plan.key == keys[0]] == [1, 2]
    assert [group.key[2] for group in got] == ["task-1", "task-0"]
    assert seconds == 5.0


def test_a_dialogue_past_its_deadline_is_cut_and_says_which_deadline_it_was() -> None:
    keys = plan_keys(1, 2)
    stage = Stage({keys[0]: [Act(31.0)], keys[1]: [Act(29.0)]})

    async def main() -> tuple[list[Group], float]:
        got = await stage.run_all(keys, Limits(deadline_s=30.0, attempts=1))
        return got, anyio.current_time()

    (group,), seconds = run_in_virtual_time(main)
    late, good = group.episodes
    assert (late.outcome, late.error) == (
        Outcome.INFRA_FAULT,
        "dialogue did not finish within 30 s",
    )
    assert late.reward is None
    assert good.outcome is Outcome.COMPLETED
    assert group.num_faults == 1
    assert stage.cut == [keys[0]]
    assert seconds == 30.0


def test_the_caller_may_make_the_episode_of_a_dialogue_past_its_deadline() -> None:
    keys = plan_keys(1, 1)
    stage = Stage({keys[0]: [Act(31.0)]})

    def fault(plan: Any, error: Exception) -> Episode:
        return build_episode(
            plan.key, outcome=Outcome.INFRA_FAULT, error=f"{plan.attempt}: {error}"
        )

    async def main() -> list[Group]:
        return await stage.run_all(keys, Limits(deadline_s=30.0, attempts=2), fault_episode=fault)

    (group,) = run_in_virtual_time(main)
    assert group.episodes[0].error == "2: dialogue did not finish within 30 s"
    assert group.episodes[0].domain == "desk"


def test_a_consumer_that_stands_still_stops_the_dialogues_but_not_for_ever() -> None:
    keys = plan_keys(50, 1)
    stage = Stage()
    limits = Limits(concurrency=4, buffer_groups=3)

    async def main() -> int:
        async with run_groups(
            keys, stage.run_dialogue, limits=limits, journal=stage.journal
        ) as groups:
            await anyio.sleep(1000)
            held = len(stage.journal.episodes)
            assert held == limits.concurrency + limits.buffer_groups
            assert groups.num_live == 0
            return held + len([group async for group in groups])

    assert run_in_virtual_time(main) == 7 + 50


def test_keys_are_read_only_as_slots_become_free() -> None:
    read: list[EpisodeKey] = []

    def keys() -> Any:
        for key in plan_keys(100, 2):
            read.append(key)
            yield key

    stage = Stage({key: [Act(1.0)] for key in plan_keys(100, 2)})

    async def main() -> None:
        async with run_groups(
            keys(), stage.run_dialogue, limits=Limits(concurrency=4), journal=stage.journal
        ) as groups:
            await anyio.sleep(0.5)
            # Two groups of two, and the key behind them that shows the second is whole.
            assert len(read) == 5
            groups.stop_admitting()
            assert len([group async for group in groups]) == 2
            assert len(groups.unfinished()) == 196

    run_in_virtual_time(main)
