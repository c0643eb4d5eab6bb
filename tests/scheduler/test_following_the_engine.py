"""Admission follows an engine: an engine of so much memory, in virtual time."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_stage import Act, ListJournal, Stage, plan_keys

from muarl.policy import EngineLoad
from muarl.record import Episode, EpisodeKey
from muarl.scheduler import EpisodePlan, Limits, Observer, run_groups
from muarl.testing import build_episode, run_in_virtual_time


class SmallEngine:
    """Holds so many dialogues in its memory; one more throws one out.

    Attributes:
        live: Dialogues in it now.
        most: The most there were.
        preemptions: How often one was thrown out.
    """

    def __init__(self, room: int, seconds: float) -> None:
        self._room = room
        self._seconds = seconds
        self.live = self.most = self.preemptions = 0
        self.sizes: list[int] = []

    def load(self) -> EngineLoad:
        use = min(1.0, self.live / self._room)
        return EngineLoad(min(self.live, self._room), 0, use, self.preemptions)

    async def run_dialogue(self, plan: EpisodePlan) -> Episode:
        self.live += 1
        self.most = max(self.most, self.live)
        self.preemptions += self.live > self._room
        try:
            await anyio.sleep(self._seconds)
        finally:
            self.live -= 1
        return build_episode(plan.key, num_turns=0)


class Sizes(Observer):
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def window_set(self, load: EngineLoad, window: int) -> None:
        self.sizes.append(window)


def roll(engine: SmallEngine, dialogues: int, concurrency: int) -> tuple[list[int], float]:
    sizes = Sizes()

    async def main() -> float:
        async with run_groups(
            plan_keys(dialogues, 1),
            engine.run_dialogue,
            limits=Limits(concurrency=concurrency, deadline_s=1e6),
            journal=ListJournal(),
            observer=sizes,
            load=engine.load,
        ) as groups:
            assert len([group async for group in groups]) == dialogues
        return anyio.current_time()

    return sizes.sizes, run_in_virtual_time(main)


def test_an_engine_with_room_gets_all_there_is_within_a_second() -> None:
    engine = SmallEngine(room=10_000, seconds=10.0)
    sizes, seconds = roll(engine, dialogues=2000, concurrency=2000)
    assert engine.most == 2000
    assert seconds < 11.0
    assert sizes[:4] == [256, 512, 1024, 2000]


def test_a_small_engine_is_kept_full_and_seldom_overfull() -> None:
    engine = SmallEngine(room=400, seconds=5.0)
    _, seconds = roll(engine, dialogues=4000, concurrency=2000)
    assert engine.most <= 512
    ideal = 4000 / 400 * 5.0
    assert seconds < 1.3 * ideal
    assert engine.preemptions < 4000 * 0.1


@settings(deadline=None, max_examples=40)
@given(
    room=st.integers(1, 40),
    concurrency=st.integers(1, 60),
    durations=st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.3, 2.0]), min_size=1, max_size=40),
)
def test_no_more_live_than_the_last_window_or_lived_before_and_all_are_finished(
    room: int, concurrency: int, durations: list[float]
) -> None:
    keys = plan_keys(len(durations), 1)
    stage = Stage({key: [Act(s)] for key, s in zip(keys, durations, strict=True)})
    window = concurrency
    preemptions = 0

    class Following(Observer):
        def window_set(self, load: EngineLoad, size: int) -> None:
            nonlocal window
            window = size
            assert 1 <= size <= concurrency

    def load() -> EngineLoad:
        nonlocal preemptions
        preemptions += stage.live > room
        return EngineLoad(stage.live, 0, min(1.0, stage.live / room), preemptions)

    async def checked(plan: EpisodePlan) -> Episode:
        assert stage.live < window
        return await stage.run_dialogue(plan)

    async def main() -> list[Any]:
        async with run_groups(
            keys,
            checked,
            limits=Limits(concurrency=concurrency),
            journal=stage.journal,
            load=load,
            observer=Following(),
        ) as groups:
            return [group async for group in groups]

    assert len(run_in_virtual_time(main)) == len(keys)
    assert stage.most_live <= concurrency


def test_a_reading_of_none_leaves_admission_alone() -> None:
    keys: list[EpisodeKey] = plan_keys(300, 1)
    stage = Stage({key: [Act(1.0)] for key in keys})

    async def main() -> None:
        await stage.run_all(keys, Limits(concurrency=300), load=lambda: None)

    run_in_virtual_time(main)
    assert stage.most_live == 300
