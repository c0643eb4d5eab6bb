"""Dialogues keep an engine like vLLM busy: as busy as it is with all their messages in one batch."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
import pytest
from scheduler_stage import ListJournal, plan_keys
from simulated_vllm import SimulatedVllm

from muarl.policy.vllm_load import LoadReader
from muarl.record import Episode
from muarl.scheduler import EpisodePlan, Limits, Observer, run_groups
from muarl.scheduler.window import ReadLoad
from muarl.seeds import generator
from muarl.testing import build_episode, run_in_virtual_time

RULES, NEW = 300, 30
"""Tokens that all dialogues begin with, and those that each message has before it anew."""


class Shape(msgspec.Struct, frozen=True):
    """What dialogues are like: messages, tokens in one, seconds until it is answered, on average."""

    messages: int = 3
    tokens: int = 16
    away_s: float = 0.05


class Played(msgspec.Struct):
    """What came of a run.

    Attributes:
        seconds: How long it took.
        workload: Of each message: tokens before it, how many of them are new, its own.
        windows: Dialogues that might live, reading by reading.
    """

    seconds: float = 0.0
    workload: list[tuple[int, int, int]] = []
    windows: list[int] = []


class Windows(Observer):
    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes

    def window_set(self, _load: Any, window: int) -> None:
        self._sizes.append(window)


def play(
    engine: SimulatedVllm,
    *,
    dialogues: int,
    concurrency: int,
    shape: Shape | None = None,
    over_http: bool = False,
) -> Played:
    """Dialogues on an engine that says its load, in process or over HTTP."""
    shape, played = shape or Shape(), Played()
    reader = LoadReader(engine.metrics, ["http://vllm"])
    load: ReadLoad = reader.latest if over_http else engine.load

    async def dialogue(plan: EpisodePlan) -> Episode:
        rng = generator(1, str(plan.key))
        context = RULES + NEW
        for _ in range(rng.randint(1, 2 * shape.messages - 1)):
            tokens = rng.randint(1, 2 * shape.tokens - 1)
            played.workload.append((context, NEW, tokens))
            await engine.sample(context, NEW, tokens)
            context += tokens + NEW
            await anyio.sleep(rng.expovariate(1 / shape.away_s))
        return build_episode(plan.key, num_turns=0)

    async def work() -> None:
        async with anyio.create_task_group() as reading:
            reading.start_soon(reader.run)
            async with run_groups(
                plan_keys(dialogues, 1),
                dialogue,
                limits=Limits(concurrency=concurrency, deadline_s=1e6),
                journal=ListJournal(),
                observer=Windows(played.windows),
                load=load,
            ) as groups:
                assert len([group async for group in groups]) == dialogues
            reading.cancel_scope.cancel()

    played.seconds = timed(engine, work)
    return played


def one_batch(engine: SimulatedVllm, workload: list[tuple[int, int, int]]) -> float:
    """Seconds that the same messages take when all are there from the start."""

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for message in workload:
                tasks.start_soon(engine.sample, *message)

    return timed(engine, work)


def timed(engine: SimulatedVllm, work: Callable[[], Awaitable[None]]) -> float:
    async def main() -> float:
        async with anyio.create_task_group() as running:
            running.start_soon(engine.run)
            await work()
            running.cancel_scope.cancel()
        return anyio.current_time()

    return run_in_virtual_time(main)


def rows_between(engine: SimulatedVllm, start_s: float, end_s: float) -> float:
    """The mean of a step."""
    return statistics.mean(rows for at, rows in engine.steps if start_s < at < end_s)


in_process_and_over_http = pytest.mark.parametrize(
    "over_http", [False, True], ids=["in process", "over HTTP"]
)


@in_process_and_over_http
@pytest.mark.parametrize(("rows", "concurrency"), [(64, 128), (64, 4096), (256, 512), (256, 4096)])
def test_with_dialogues_to_spare_the_engine_is_as_fast_as_on_one_batch(
    rows: int, concurrency: int, over_http: bool
) -> None:
    engine = SimulatedVllm(rows=rows, memory=400_000)
    played = play(engine, dialogues=5 * rows, concurrency=concurrency, over_http=over_http)
    alone = one_batch(SimulatedVllm(rows=rows, memory=400_000), played.workload)
    assert alone / played.seconds > 0.9
    assert rows_between(engine, 1.0, played.seconds / 2) > 0.95 * rows, "from the first second on"


def test_with_as_many_dialogues_as_rows_rows_stay_empty_between_two_messages() -> None:
    """Why the benchmark lets twice as many live: it is not admission that leaves them empty."""
    engine = SimulatedVllm(rows=128, memory=400_000)
    played = play(engine, dialogues=512, concurrency=128, shape=Shape(tokens=7))
    assert set(played.windows) == {128}
    assert rows_between(engine, 1.0, played.seconds / 2) < 0.9 * 128


@in_process_and_over_http
def test_an_engine_of_a_thousand_rows_has_them_full_within_three_seconds_of_long_messages(
    over_http: bool,
) -> None:
    engine = SimulatedVllm(rows=1024, memory=10_000_000)
    shape = Shape(messages=1, tokens=200)
    play(engine, dialogues=1024, concurrency=1024, shape=shape, over_http=over_http)
    assert max(rows for at, rows in engine.steps if at < 3.0) > 1000


@in_process_and_over_http
def test_an_engine_of_little_memory_is_kept_busy_and_throws_out_hardly_more_than_on_one_batch(
    over_http: bool,
) -> None:
    engine = SimulatedVllm(rows=128, memory=20_000)
    played = play(engine, dialogues=512, concurrency=4096, over_http=over_http)
    batch = SimulatedVllm(rows=128, memory=20_000)
    assert one_batch(batch, played.workload) / played.seconds > 0.9
    # A handful each; trio starts tasks in random order, so which has more is luck.
    assert engine.preemptions <= 2 * batch.preemptions + 20
