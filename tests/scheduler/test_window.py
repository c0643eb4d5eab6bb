"""The window that follows an engine's load, and the waits between attempts."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from muarl.policy import EngineLoad
from muarl.scheduler.backoff import LONGEST_WAIT_S, retry_wait_s
from muarl.scheduler.window import Window
from muarl.testing import build_key

IDLE = EngineLoad(running=10, waiting=0, kv_use=0.3)
QUEUED = EngineLoad(running=256, waiting=40, kv_use=0.5)
FULL = EngineLoad(running=256, waiting=0, kv_use=0.95)


def preempting(times: int) -> EngineLoad:
    return EngineLoad(running=200, waiting=20, kv_use=1.0, preemptions=times)


def test_unread_it_stays_at_its_ceiling() -> None:
    assert Window(4096).size == 4096


def test_an_idle_engine_is_given_twice_as_much_until_the_ceiling() -> None:
    window = Window(4096)
    sizes = []
    for _ in range(6):
        window.observe(IDLE, live=window.size if sizes else 0)
        sizes.append(window.size)
    assert sizes == [256, 512, 1024, 2048, 4096, 4096]


def test_it_does_not_grow_while_fewer_dialogues_live_than_may() -> None:
    window = Window(4096)
    for _ in range(5):
        window.observe(IDLE, live=255)
    assert window.size == 256


def test_a_queue_or_a_full_memory_stops_growth_and_takes_nothing_away() -> None:
    window = Window(4096)
    for load in (QUEUED, FULL, QUEUED):
        window.observe(load, live=256)
        assert window.size == 256


def test_preemption_cuts_it_once_and_then_it_grows_in_steps() -> None:
    window = Window(1600)
    for _ in range(3):
        window.observe(IDLE, live=window.size)
    assert window.size == 1600
    for times in range(1, 9):
        window.observe(preempting(times), live=1000)
    assert window.size == 700, "0.7 of the live; what is preempted meanwhile is the same flood"
    window.observe(preempting(8), live=700)
    assert window.size == 700
    window.observe(EngineLoad(10, 0, 0.3, preemptions=8), live=700)
    window.observe(EngineLoad(10, 0, 0.3, preemptions=8), live=744)
    assert window.size == 744 + 47, "a sixteenth at a time, never doubled again"


def test_preemptions_before_the_first_reading_are_not_of_this_run() -> None:
    window = Window(100)
    window.observe(preempting(999), live=100)
    assert window.size == 100


READINGS = st.tuples(
    st.builds(
        EngineLoad,
        running=st.integers(0, 500),
        waiting=st.integers(0, 5),
        kv_use=st.floats(0, 1),
        preemptions=st.integers(0, 3),
    ),
    st.integers(0, 500),
)


@given(ceiling=st.integers(1, 500), readings=st.lists(READINGS, max_size=60))
def test_it_stays_between_one_and_its_ceiling_and_shrinks_on_preemption_alone(
    ceiling: int, readings: list[tuple[EngineLoad, int]]
) -> None:
    window = Window(ceiling)
    totals = itertools.accumulate(load.preemptions for load, _ in readings)
    before = None
    for (load, live), total in zip(readings, totals, strict=True):
        reading = EngineLoad(load.running, load.waiting, load.kv_use, total)
        size = window.size
        window.observe(reading, live)
        assert 1 <= window.size <= ceiling
        if before is not None:
            if window.size < size:
                assert total > before
            if window.size > size:
                assert total == before
                assert not load.waiting
                assert load.kv_use < 0.9
        before = total


@given(ceiling=st.integers(1, 5000), start=st.integers(1, 5000))
def test_whatever_happened_an_idle_engine_gets_everything_in_the_end(
    ceiling: int, start: int
) -> None:
    window = Window(ceiling)
    window.observe(preempting(0), start)
    window.observe(preempting(1), start)
    for _ in range(200):
        window.observe(EngineLoad(1, 0, 0.1, preemptions=1), window.size)
    assert window.size == ceiling


@given(sample=st.integers(0, 1000), attempt=st.integers(1, 40), first=st.floats(0, 60))
def test_waits_double_up_to_a_limit_spread_over_half_and_are_the_same_twice(
    sample: int, attempt: int, first: float
) -> None:
    key = build_key(sample=sample)
    wait_s = retry_wait_s(key, attempt, first)
    longest = min(first * 2.0 ** (attempt - 1), LONGEST_WAIT_S)
    assert longest / 2 <= wait_s <= longest
    assert wait_s == retry_wait_s(key, attempt, first)


def test_dialogues_that_failed_together_do_not_come_back_together() -> None:
    waits = {retry_wait_s(build_key(sample=i), 1, 1.0) for i in range(100)}
    assert len(waits) == 100
