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
@given(sizes=SIZES, concurrency=st.integers(1, 7), attempts=st.integers(1, 3), data=st.data())
def test_any_order_of_ends_gives_each_group_once_and_never_more_slots_than_there_are(
    sizes: list[int], concurrency: int, attempts: int, data: st.DataObject
) -> None:
    keys = keys_of(sizes)
    done = {key: build_episode(key, num_turns=0) for key in keys if data.draw(st.booleans())}
    admission = Admission(keys, concurrency=concurrency, attempts=attempts, done=done)
    running: list[EpisodePlan] = []
    started: list[EpisodePlan] = []
    groups: list[Group] = []
    while True:
        while (action := admission.take()) is not None:
            if isinstance(action, Group):
                groups.append(action)
                admission.release()
            else:
                running.append(action)
                started.append(action)
        assert admission.slots_taken == len(running) <= concurrency
        if not running:
            break
        plan = running.pop(data.draw(st.integers(0, len(running) - 1)))
        outcome = data.draw(st.sampled_from([Outcome.COMPLETED, Outcome.INFRA_FAULT]))
        episode = build_episode(plan.key, outcome=outcome, num_turns=0)
        retried = admission.tries_again(plan, episode)
        assert retried is (outcome.is_fault and plan.attempt < attempts)
        if not retried and (group := admission.finish(episode)) is not None:
            groups.append(group)
        admission.release()
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
    assert not admission.tries_again(first, fault), "a drain tries nothing again"
    assert admission.take() is None
    left = [keys[0], keys[3], keys[4], keys[5]]
    assert admission.unfinished() == left
    assert admission.unfinished() == left, "asking changes nothing"
