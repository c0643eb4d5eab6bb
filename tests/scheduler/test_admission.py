"""The admission state machine, without any event loop."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_stage import plan_keys

from muarl.record import EpisodeKey, Outcome
from muarl.scheduler import EpisodePlan, Group
from muarl.scheduler.admission import Admission
from muarl.testing import build_episode

SIZES = st.lists(st.integers(1, 5), max_size=6)


def keys_of(sizes: list[int]) -> list[EpisodeKey]:
    whole = plan_keys(len(sizes), 5)
    return [key for g, size in enumerate(sizes) for key in whole[5 * g : 5 * g + size]]


@settings(deadline=None)
@given(
    sizes=SIZES,
    concurrency=st.integers(1, 7),
    attempts=st.integers(1, 3),
    first_wait_s=st.sampled_from([0.0, 1.0]),
    data=st.data(),
)
def test_any_order_of_ends_gives_each_group_once_and_never_more_slots_than_there_are(
    sizes: list[int], concurrency: int, attempts: int, first_wait_s: float, data: st.DataObject
) -> None:
    keys = keys_of(sizes)
    done = {key: build_episode(key, num_turns=0) for key in keys if data.draw(st.booleans())}
    admission = Admission(
        keys, concurrency=concurrency, attempts=attempts, done=done, first_wait_s=first_wait_s
    )
    now = 0.0
    due: dict[EpisodePlan, float] = {}
    running: list[EpisodePlan] = []
    started: list[EpisodePlan] = []
    groups: list[Group] = []
    while not admission.is_over:
        while (action := admission.take(now)) is not None:
            if isinstance(action, Group):
                groups.append(action)
                admission.release()
                continue
            assert len(running) < concurrency
            overdue = [plan for plan, when in due.items() if when <= now]
            assert action in overdue or not overdue, "retries come before fresh work"
            assert due.pop(action, now) <= now, "and not before their time"
            running.append(action)
            started.append(action)
        assert admission.slots_taken == len(running)
        if not running:
            if admission.next_retry_s is None:
                break
            now = admission.next_retry_s
            assert now == min(due.values())
            continue
        concurrency = admission.concurrency = data.draw(st.integers(1, 7) | st.just(concurrency))
        plan = running.pop(data.draw(st.integers(0, len(running) - 1)))
        outcome = data.draw(st.sampled_from([Outcome.COMPLETED, Outcome.INFRA_FAULT]))
        effect = data.draw(st.sampled_from([None, None, "pay"]))
        episode = build_episode(plan.key, outcome=outcome, num_turns=0, effect=effect)
        wait_s = admission.tries_again(plan, episode, now)
        may = outcome.is_fault and plan.attempt < attempts and effect is None
        assert (wait_s is not None) is may
        if wait_s is not None:
            due[EpisodePlan(plan.key, plan.attempt + 1)] = now + wait_s
        elif (group := admission.finish(episode)) is not None:
            groups.append(group)
        admission.release()
    assert admission.is_over
    assert [plan.key for plan in started if plan.attempt == 1] == [k for k in keys if k not in done]
    assert sorted(group.key for group in groups) == sorted({key.group for key in keys})
    for group in groups:
        expected = [key for key in keys if key.group == group.key]
        assert [episode.key for episode in group.episodes] == expected
    assert admission.unfinished() == []


def test_what_was_stopped_names_the_missing_of_open_groups_and_then_all_that_was_not_begun() -> (
    None
):
    keys = keys_of([3, 2, 2])
    done = {keys[1]: build_episode(keys[1]), keys[6]: build_episode(keys[6])}
    admission = Admission(keys, concurrency=3, attempts=2, done=done)
    first, second, _ = (admission.take() for _ in range(3))
    assert isinstance(first, EpisodePlan)
    assert isinstance(second, EpisodePlan)
    admission.finish(build_episode(second.key))
    admission.release()
    admission.stop()
    fault = build_episode(first.key, outcome=Outcome.INFRA_FAULT)
    assert admission.tries_again(first, fault) is None, "a drain tries nothing again"
    assert admission.take() is None
    left = [keys[0], keys[3], keys[4], keys[5]]
    assert admission.unfinished() == left
    assert admission.unfinished() == left, "asking changes nothing"
