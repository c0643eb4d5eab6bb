"""A run in virtual time: dialogues that take as long as they are said to, and updates likewise."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio

from muarl.record import Episode, EpisodeKey, Sample, Span
from muarl.scheduler import EpisodePlan, Group, Groups, Limits, run_groups
from muarl.scheduler.admission import GroupSource
from muarl.scheduler.crew import Crew
from muarl.seeds import generator
from muarl.testing import build_episode, build_key
from muarl.train.lineup import Lineup
from muarl.train.pipeline import Pipeline
from muarl.train.plan import Batch, BatchRecord, Pace, Place, Plan

SIZE = 2
"""Dialogues of a group."""


class Killed(Exception):
    """The process is no more."""


@dataclass
class World:
    """A run with its disk.

    Attributes:
        plan: What is sampled.
        pace: How far ahead.
        seed: Of all durations.
        slow: Share of dialogues that take twenty times as long.
        learn_s: Seconds of an update.
        journal: Episodes on disk.
        records: Of batches on disk.
        trained: Iteration to what it learned from, as the last process that made it did.
        version: Of the engine's weights.
        live_while_learning: Seconds of updates in which dialogues were under way.
    """

    plan: Plan
    pace: Pace
    seed: int = 0
    slow: float = 0.0
    learn_s: float = 1.0
    journal: list[Episode] = field(default_factory=list)
    records: list[BatchRecord] = field(default_factory=list)
    trained: dict[int, Batch] = field(default_factory=dict)
    version: int = 0
    live_while_learning: float = 0.0
    process: int = 0
    crew: Crew | None = None

    def append(self, episode: Episode) -> None:
        self.journal.append(episode)

    async def dialogue(self, plan: EpisodePlan) -> Episode:
        """Three messages, each sampled by the weights of the moment in which it ends."""
        rng = generator(self.seed, "dialogue", str(plan.key), self.process)
        seconds = rng.uniform(0.1, 1.0) * (20 if rng.random() < self.slow else 1)
        spans = []
        for number in range(3):
            await anyio.sleep(seconds)
            spans.append(Span(10 * number, 10 * number + 4, self.version))
        sample = Sample(list(range(40)), spans, [-0.1] * 12)
        return build_episode(plan.key, samples=[sample], turns=[], reward=rng.choice([0.0, 1.0]))

    async def run(self, *, first: int = 0, kill_at_s: float | None = None) -> float:
        """One process, from an iteration on; the seconds it took. Raises Killed."""
        self.process += 1
        self.version = first
        done = {episode.key: episode for episode in self.journal}
        lineup = Lineup(self.plan, self.pace, version=first, records=list(self.records), done=done)
        pipeline = Pipeline(lineup, crew=self.crew)
        began = anyio.current_time()

        def rolling_out(source: GroupSource) -> AbstractAsyncContextManager[Groups]:
            limits = Limits(concurrency=64, deadline_s=1e6)
            return run_groups(source, self.dialogue, limits=limits, journal=self, done=done)

        async def learn(batch: Batch) -> bool:
            self.records = [r for r in self.records if r.iteration != batch.iteration]
            self.records.append(batch.record)
            busy = pipeline.busy.seconds
            await anyio.sleep(self.learn_s)
            self.live_while_learning += pipeline.busy.seconds - busy
            if not self.pace.in_flight:
                await pipeline.quiet()
            self.version = batch.iteration + 1
            self.trained[batch.iteration] = batch
            return True

        if kill_at_s is None:
            await pipeline.run(rolling_out, learn)
        else:
            with anyio.move_on_after(kill_at_s) as scope:
                await pipeline.run(rolling_out, learn)
            if scope.cancelled_caught:
                raise Killed
        return anyio.current_time() - began


def plan(cohorts: int, wanted: int, **more: Any) -> Plan:
    """A plan of `wanted` tasks for each cohort, and three more to replace some."""

    def tasks(cohort: int) -> Sequence[str]:
        return [f"task-{cohort}-{number}" for number in range(wanted + 3)]

    def keys(place: Place) -> list[EpisodeKey]:
        first = place.take * SIZE
        return [
            build_key(place.task_id, first + sample, iteration=place.cohort)
            for sample in range(SIZE)
        ]

    return Plan(cohorts, wanted, tasks, keys, **more)


def differs(group: Group) -> bool:
    return len({episode.reward for episode in group.episodes}) > 1


def lags(batch: Batch) -> set[int]:
    return {
        batch.iteration - span.policy_version
        for group in batch.groups
        for episode in group.episodes
        for sample in episode.samples
        for span in sample.spans
    }


class Table:
    """Where processes of one run exchange groups, here in one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.given: list[Group] = []
        self.count = 0
        self.all_came = anyio.Event()

    async def exchange(self, groups: Sequence[Group]) -> list[Group]:
        self.given += groups
        self.count += 1
        given, all_came = self.given, self.all_came
        if self.count == self.size:
            self.given, self.count, self.all_came = [], 0, anyio.Event()
            all_came.set()
        await all_came.wait()
        return list(given)


@dataclass
class Seat:
    """One process at the table: a `Crew`."""

    table: Table
    rank: int

    @property
    def size(self) -> int:
        return self.table.size

    async def exchange(self, groups: Sequence[Group]) -> list[Group]:
        return await self.table.exchange(groups)


def crews(world: World, size: int) -> list[World]:
    """The same run by several processes, each with a disk of its own."""
    table = Table(size)
    return [
        replace(
            world,
            plan=replace(world.plan, is_mine=lambda place, rank=rank: place.number % size == rank),
            crew=Seat(table, rank),
            journal=[],
            records=list(world.records),
            trained={},
            process=0,
        )
        for rank in range(size)
    ]


async def all_run(worlds: Sequence[World], **how: Any) -> None:
    """Run them at once."""
    async with anyio.create_task_group() as tasks:
        for world in worlds:
            tasks.start_soon(partial(world.run, **how))
