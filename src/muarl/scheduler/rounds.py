"""A whole round of dialogues, with drain on request: what training and evaluation share."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Required, TypedDict, Unpack

import anyio
import msgspec

from muarl.record import Episode, EpisodeKey
from muarl.scheduler.admission import Group, GroupSource
from muarl.scheduler.crew import Crew, own_concurrency, own_share
from muarl.scheduler.dialogues import DialogueRunner
from muarl.scheduler.fuse import Fuse, error_of
from muarl.scheduler.journal import Journal
from muarl.scheduler.limits import Limits
from muarl.scheduler.observer import Observer
from muarl.scheduler.scheduler import Groups, run_groups
from muarl.spec.run import RolloutSpec


class StopSignal:
    """Set once, to ask a run to finish what is under way, save, and end."""

    def __init__(self) -> None:
        self.requested = False
        self._event = anyio.Event()

    def request(self) -> None:
        """Ask. Call from the event loop's thread."""
        self.requested = True
        self._event.set()

    async def wait(self) -> None:
        """Return when it was asked for."""
        await self._event.wait()


class Interrupted(KeyboardInterrupt):
    """A run ended early because it was asked to; all that was finished is on disk."""


def bounds(spec: RolloutSpec) -> Limits:
    """The scheduler's limits, from a run's spec."""
    return Limits(
        concurrency=spec.concurrency,
        deadline_s=spec.deadline_s,
        attempts=spec.attempts,
        max_fault_rate=spec.max_fault_rate,
        retry_wait_s=spec.retry_wait_s,
    )


class RoundOptions(TypedDict, total=False):
    """How a round is run.

    Attributes:
        limits: Of the scheduler.
        journal: Takes every episode before it is delivered.
        done: Episodes of an earlier run, which count again.
        stop: Asks the round to drain.
        fuse: Of more than this round; None: one of its own.
        observer: Told what happens.
        crew: Processes that share out the round; None: there is this one. Each plays its share, and
            all get all groups.
    """

    limits: Required[Limits]
    journal: Required[Journal]
    done: Mapping[EpisodeKey, Episode] | None
    stop: StopSignal | None
    fuse: Fuse | None
    observer: Observer | None
    crew: Crew | None


async def run_round(
    keys: Sequence[EpisodeKey],
    runner: DialogueRunner,
    *,
    on_group: Callable[[Group], None] = lambda _group: None,
    **options: Unpack[RoundOptions],
) -> list[Group]:
    """Run dialogues to the last group, and keep all of them.

    Returns:
        Every group, in the order of `keys`.

    Raises:
        Interrupted: As `stream_round`.
        FaultRateError: Likewise.
    """
    finished: dict[tuple[str, int, str], Group] = {}

    def keep(group: Group) -> None:
        finished[group.key] = group
        on_group(group)

    order = list(dict.fromkeys(key.group for key in keys))
    crew = options.get("crew")
    mine = set(own_share(crew, order))
    await stream_round([k for k in keys if k.group in mine], runner, on_group=keep, **options)
    if crew is not None:
        for group in await crew.exchange(list(finished.values())):
            if group.key not in mine:
                keep(group)
    return [finished[key] for key in order]


async def stream_round(
    keys: Sequence[EpisodeKey],
    runner: DialogueRunner,
    *,
    on_group: Callable[[Group], None] = lambda _group: None,
    **options: Unpack[RoundOptions],
) -> None:
    """Run dialogues to the last group, and keep none of them: they are in the journal.

    Raises:
        Interrupted: `stop` was requested before the last group was whole, or before the first
            dialogue began: then none begins.
        FaultRateError: Too many dialogues ended in faults; all episodes are journaled.
    """
    limits = options["limits"]
    fuse = options["fuse"] = options.get("fuse") or Fuse(limits.max_fault_rate, limits.concurrency)
    faults: Counter[str] = Counter()
    num_episodes = 0
    async with open_groups(keys, runner, **options) as groups:
        async for group in groups:
            num_episodes += len(group.episodes)
            faults.update(error_of(e) for e in group.episodes if e.outcome.is_fault)
            on_group(group)
        unfinished = groups.unfinished()
    if unfinished:
        raise Interrupted
    fuse.judge_round(faults, num_episodes)


@asynccontextmanager
async def open_groups(
    keys: Iterable[EpisodeKey] | GroupSource,
    runner: DialogueRunner,
    **options: Unpack[RoundOptions],
) -> AsyncIterator[Groups]:
    """Run dialogues while the block is open; see `run_groups`. A stop lets them end, and no more begin.

    Raises:
        Interrupted: `stop` was requested before the first dialogue began.
        FaultRateError: The fuse blew.
    """
    limits, stop = options["limits"], options.get("stop")
    if stop is not None and stop.requested:
        raise Interrupted
    live = own_concurrency(options.get("crew"), limits.concurrency)
    if runner.max_live is not None:
        live = min(live, runner.max_live)
    limits = msgspec.structs.replace(limits, concurrency=live)
    async with (
        runner.sharing(),
        run_groups(
            keys,
            runner,
            limits=limits,
            journal=options["journal"],
            done=options.get("done"),
            fuse=options.get("fuse"),
            fault_episode=runner.fault_episode,
            observer=options.get("observer"),
            load=runner.load,
        ) as groups,
        anyio.create_task_group() as side,
    ):
        if stop is not None:
            side.start_soon(_drain_on, stop, groups)
        yield groups
        side.cancel_scope.cancel()


async def _drain_on(stop: StopSignal, groups: Groups) -> None:
    await stop.wait()
    groups.stop_admitting()
