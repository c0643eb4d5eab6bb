"""What the scheduler promises where no time is involved, on asyncio and trio."""

from __future__ import annotations

import contextvars
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from scheduler_stage import Act, Stage, consume, plan_keys

from muarl.errors import FaultRateError, RecordError
from muarl.record import Episode, JournalWriter, Outcome, read_journal
from muarl.scheduler import EpisodePlan, Fuse, Limits, run_groups, shell
from muarl.testing import build_episode, build_key

pytestmark = pytest.mark.anyio


async def test_two_hundred_dialogues_give_their_groups_once_each() -> None:
    keys = plan_keys(50, 4)
    stage = Stage()
    full = anyio.Event()

    async def wait_for_the_stage_to_fill(plan: EpisodePlan) -> Episode:
        if len(stage.started) == 15:
            full.set()
        episode = await stage.run_dialogue(plan)
        await full.wait()
        return episode

    got = await consume(keys, wait_for_the_stage_to_fill, limits=Limits(concurrency=16))
    assert sorted(group.key[2] for group in got) == sorted({key.task_id for key in keys})
    assert all(len(group.episodes) == 4 for group in got)
    assert len(stage.started) == 200


async def test_nothing_planned_gives_no_group() -> None:
    assert await Stage().run_all([], Limits()) == []


async def test_retries_come_before_new_dialogues_and_stop_at_the_limit() -> None:
    keys = plan_keys(2, 2)
    stage = Stage({keys[0]: [Act(outcome=Outcome.USER_FAULT)]})
    got = await stage.run_all(
        keys, Limits(concurrency=1, attempts=3, max_fault_rate=1.0, retry_wait_s=0.0)
    )
    started = [(plan.key, plan.attempt) for plan in stage.started]
    assert started == [(keys[0], n) for n in (1, 2, 3)] + [(key, 1) for key in keys[1:]]
    assert [group.num_faults for group in got] == [1, 0]
    assert stage.journal.keys == keys


async def test_an_episode_that_ends_as_everything_is_cancelled_is_still_journaled() -> None:
    (key,) = plan_keys(1, 1)
    stage = Stage()
    with anyio.CancelScope() as everything:

        async def last(plan: EpisodePlan) -> Episode:
            episode = await stage.run_dialogue(plan)
            everything.cancel()
            return episode

        await consume([key], last, journal=stage.journal)
    assert everything.cancelled_caught
    assert stage.journal.keys == [key]


async def test_a_journal_on_disk_resumes_to_the_same_groups(tmp_path: Path) -> None:
    keys = plan_keys(4, 3)
    path = tmp_path / "episodes.journal"
    stage = Stage()
    limits = Limits(concurrency=5)
    with JournalWriter(path) as journal:
        async with run_groups(keys, stage.run_dialogue, limits=limits, journal=journal) as groups:
            first = await anext(groups)
    done = {episode.key: episode for episode in read_journal(path)}
    assert {episode.key for episode in first.episodes} <= set(done)
    rest = Stage()
    with JournalWriter(path) as journal:
        async with run_groups(
            keys, rest.run_dialogue, limits=limits, journal=journal, done=done
        ) as groups:
            got = [group async for group in groups]
    assert {plan.key for plan in rest.started} == set(keys) - set(done)
    assert sorted(group.key for group in got) == sorted({key.group for key in keys})
    assert sorted(str(e.key) for e in read_journal(path)) == sorted(map(str, keys))


async def test_a_bug_in_a_dialogue_cancels_all_the_others_and_comes_out_bare() -> None:
    keys = plan_keys(4, 2)
    stage = Stage({key: [Act(seconds=1000)] for key in keys[:-1]})

    async def buggy(plan: EpisodePlan) -> Episode:
        if plan.key == keys[-1]:
            await anyio.wait_all_tasks_blocked()
            raise ZeroDivisionError("a bug")
        return await stage.run_dialogue(plan)

    with pytest.raises(ZeroDivisionError, match="a bug"):
        await consume(keys, buggy)
    assert stage.live == 0
    assert set(stage.cut) == set(keys[:-1])


async def test_an_error_of_the_consumer_cancels_the_dialogues_and_comes_out_bare() -> None:
    keys = plan_keys(4, 2)
    stage = Stage({key: [Act(seconds=1000)] for key in keys})

    async def fail() -> None:
        async with run_groups(keys, stage.run_dialogue, limits=Limits(), journal=stage.journal):
            await anyio.wait_all_tasks_blocked()
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await fail()
    assert stage.live == 0
    assert len(stage.cut) == 8


async def test_leaving_the_loop_early_cancels_what_is_live() -> None:
    keys = plan_keys(2, 1)
    stage = Stage({keys[1]: [Act(seconds=1000)]})
    async with run_groups(
        keys, stage.run_dialogue, limits=Limits(), journal=stage.journal
    ) as groups:
        async for group in groups:
            assert group.key == keys[0].group
            break
    assert stage.cut == [keys[1]]
    assert groups.unfinished() == [keys[1]]


async def test_an_endpoint_that_is_down_blows_the_fuse_and_its_errors_are_counted() -> None:
    keys = plan_keys(40, 4)

    async def down(plan: EpisodePlan) -> Episode:
        error = "no answer" if plan.key.sample else "connection refused"
        await anyio.lowlevel.checkpoint()
        return build_episode(plan.key, outcome=Outcome.INFRA_FAULT, error=error, num_turns=0)

    with pytest.raises(FaultRateError) as caught:
        await consume(keys, down, limits=Limits(concurrency=32))
    message = str(caught.value)
    assert "64 of the last 64 attempts were faults (limit 20%):" in message
    assert "  48 x no answer\n  16 x connection refused\n" in message
    assert "resume" in message


async def test_a_fault_that_blows_the_fuse_is_journaled_only_if_it_must_not_be_tried_again() -> (
    None
):
    keys = plan_keys(64, 1)
    stage = Stage()

    async def down(plan: EpisodePlan) -> Episode:
        await anyio.lowlevel.checkpoint()
        effect = "pay" if plan.key == keys[-1] else None
        return build_episode(plan.key, outcome=Outcome.INFRA_FAULT, effect=effect, num_turns=0)

    limits = Limits(concurrency=1, attempts=1, max_fault_rate=0.99)
    with pytest.raises(FaultRateError):
        await consume(keys, down, limits=limits, journal=stage.journal)
    assert stage.journal.keys == keys
    keys[-1], again = keys[0], Stage()
    with pytest.raises(FaultRateError):
        await consume(plan_keys(64, 1), down, limits=limits, journal=again.journal)
    assert len(again.journal.keys) == 63


async def test_a_journal_that_cannot_be_written_stops_the_run() -> None:
    class Full:
        def append(self, episode: Episode) -> None:
            raise RecordError("no space") from OSError("28")

    with pytest.raises(RecordError, match="no space") as caught:
        await consume(plan_keys(3, 2), Stage().run_dialogue, journal=Full())
    assert isinstance(caught.value.__cause__, OSError)


async def test_an_episode_of_another_key_is_a_bug() -> None:
    async def mixed_up(plan: EpisodePlan) -> Episode:
        await anyio.lowlevel.checkpoint()
        return build_episode(build_key("other"))

    with pytest.raises(ValueError, match=r"dialogue of train/0/task-0/0 gave .*train/0/other/0"):
        await consume(plan_keys(1, 1), mixed_up)


@pytest.mark.parametrize("order", [[0, 0], [0, 2, 1]])
async def test_a_key_twice_or_a_group_torn_apart_is_refused(order: list[int]) -> None:
    keys = plan_keys(2, 2)
    with pytest.raises(ValueError, match="twice"):
        await Stage().run_all([keys[i] for i in order], Limits())


async def test_what_a_dialogue_sets_in_its_context_does_not_reach_the_next() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")
    stage = Stage()

    async def naming(plan: EpisodePlan) -> Episode:
        assert name.get() == ""
        name.set(str(plan.key))
        return await stage.run_dialogue(plan)

    async with run_groups(
        plan_keys(5, 2), naming, limits=Limits(concurrency=1), journal=stage.journal
    ) as groups:
        assert len([group async for group in groups]) == 5


async def test_nothing_starts_while_the_event_loop_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_AT_A_STROKE", "_UNHURRIED", "_STARTS_PER_PASS"):
        monkeypatch.setattr(shell, name, 2)
    stage = Stage()

    async def busy(plan: EpisodePlan) -> Episode:
        stage.live += 1
        stage.most_live = max(stage.most_live, stage.live)
        for _ in range(10):
            time.sleep(0.003)  # noqa: ASYNC251 - the point: it holds up the loop
            await anyio.sleep(0.012)
        stage.live -= 1
        return build_episode(plan.key, num_turns=0)

    # Five keep the loop busy; thirteen make a pass of 40 ms.
    assert len(await consume(plan_keys(40, 1), busy)) == 40
    assert stage.most_live < 30


async def test_progress_counts_live_final_and_retried() -> None:
    keys = plan_keys(2, 2)
    stage = Stage({keys[0]: [Act(outcome=Outcome.INFRA_FAULT), Act()]})
    release = anyio.Event()

    async def held(plan: EpisodePlan) -> Episode:
        if plan.key == keys[-1]:
            await release.wait()
        return await stage.run_dialogue(plan)

    async with run_groups(
        keys, held, limits=Limits(retry_wait_s=0.0), journal=stage.journal
    ) as groups:
        await anext(groups)
        await anyio.wait_all_tasks_blocked()
        assert (groups.num_live, groups.num_final, groups.num_retried) == (1, 3, 1)
        release.set()
        await anext(groups)
        with pytest.raises(StopAsyncIteration):
            await anext(groups)


async def test_one_fuse_serves_several_rounds() -> None:
    fuse = Fuse(0.5, 64)

    async def down(plan: EpisodePlan) -> Any:
        await anyio.lowlevel.checkpoint()
        return build_episode(plan.key, outcome=Outcome.INFRA_FAULT, num_turns=0)

    for _ in range(3):
        groups = await consume(plan_keys(5, 4), down, limits=Limits(attempts=1), fuse=fuse)
        assert len(groups) == 5
    with pytest.raises(FaultRateError, match="64 of the last 64"):
        await consume(plan_keys(5, 4), down, limits=Limits(attempts=1), fuse=fuse)


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"attempts": 0}, {"deadline_s": 0.0}])
async def test_limits_that_would_run_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Limits(**wrong)
