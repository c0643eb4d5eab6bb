"""Sampling and learning at once: groups come in, batches go out, and what overlapped is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

import anyio

from muarl.record import EpisodeKey
from muarl.scheduler import Fuse, Groups
from muarl.scheduler.admission import GroupSource
from muarl.scheduler.crew import Crew
from muarl.scheduler.fuse import error_of
from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.train.lineup import Lineup
from muarl.train.plan import Batch


class Busy:
    """How long dialogues were under way; between two moments by subtraction."""

    def __init__(self) -> None:
        self._total = 0.0
        self._since: float | None = None

    def set(self, busy: bool) -> None:
        """Dialogues are under way from now on, or none is."""
        now = anyio.current_time()
        if self._since is not None:
            self._total += now - self._since
        self._since = now if busy else None

    @property
    def seconds(self) -> float:
        """So far."""
        return self._total + (0.0 if self._since is None else anyio.current_time() - self._since)


class Pipeline:
    """Runs a lineup's dialogues and its updates, each as far as the lineup lets it.

    Args:
        lineup: Decides what begins and what is learned from.
        stop: Asks for an end; None: nobody does.
        fuse: Judges the dialogues of each batch; None: nobody does.
        crew: Processes that sample other groups of the plan; None: there are none.

    Attributes:
        busy: How long dialogues were under way.
    """

    def __init__(
        self,
        lineup: Lineup,
        *,
        stop: StopSignal | None = None,
        fuse: Fuse | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.lineup = lineup
        self.busy = Busy()
        self._stop = stop
        self._fuse = fuse
        self._crew = crew
        self._changed = anyio.Event()
        self._ended = False
        self._look_again: Callable[[], None] = lambda: None

    async def run(
        self,
        open_groups: Callable[[GroupSource], AbstractAsyncContextManager[Groups]],
        learn: Callable[[Batch], Awaitable[bool]],
    ) -> None:
        """Make the updates of the lineup, one after another.

        Args:
            open_groups: Runs the dialogues of a source while its block is open.
            learn: Makes an update, and gives the sampler the new weights: where weights may not
                change while something is sampled, after `quiet`. Says whether to go on.

        Raises:
            Interrupted: `stop` was requested; what was under way has ended.
            FaultRateError: Too many dialogues of a batch were faults.
        """
        if self.lineup.is_over:
            return
        is_interrupted = True
        async with open_groups(_Watched(self)) as groups, anyio.create_task_group() as side:
            self._look_again = groups.look_again
            side.start_soon(self._collect, groups)
            # Not out of the block: what else is open around it would wrap it in a group.
            with suppress(Interrupted):
                while not self.lineup.is_over:
                    batch = await self._next_batch(groups)
                    self._judge(batch)
                    goes_on = await learn(batch)
                    self.lineup.advance()
                    groups.look_again()
                    if not goes_on:
                        break
                is_interrupted = False
            side.cancel_scope.cancel()
        if is_interrupted:
            raise Interrupted

    async def quiet(self) -> None:
        """Return when nothing is sampled, and nothing may begin before the lineup advances.

        Raises:
            Interrupted: `stop` was requested, and dialogues that should have been held were not.
        """
        while not self.lineup.is_quiet:
            if await self._exchange():
                continue
            if self._ended:
                raise Interrupted
            await self._change()

    async def _next_batch(self, groups: Groups) -> Batch:
        while True:
            if self._stop is not None and self._stop.requested:
                while not self._ended:
                    await self._change()
                raise Interrupted
            batch = self.lineup.next_batch()
            if batch is not None:
                return batch
            if await self._exchange():
                continue
            if self._ended:
                raise Interrupted
            groups.look_again()
            await self._change()

    async def _exchange(self) -> bool:
        """Give other processes the groups that are due, and take theirs; whether any were due."""
        if self._crew is None or (ours := self.lineup.to_exchange()) is None:
            return False
        self.lineup.exchanged(await self._crew.exchange(ours))
        self._look_again()
        return True

    async def _change(self) -> None:
        self._changed = anyio.Event()
        await self._changed.wait()

    async def _collect(self, groups: Groups) -> None:
        async for group in groups:
            self.lineup.whole(group)
            self.busy.set(self.lineup.num_open > 0)
            groups.look_again()
            self._changed.set()
        self._ended = True
        self._changed.set()

    def _judge(self, batch: Batch) -> None:
        if self._fuse is None:
            return
        episodes = [episode for group in batch.all_groups for episode in group.episodes]
        faults = Counter(error_of(e) for e in episodes if e.outcome.is_fault)
        self._fuse.judge_round(faults, len(episodes))


class _Watched:
    """A lineup as a source of groups, with a watch on it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def next_group(self) -> list[EpisodeKey] | None:
        keys = self._pipeline.lineup.next_group()
        if keys is not None:
            self._pipeline.busy.set(True)
        return keys

    @property
    def is_over(self) -> bool:
        return self._pipeline.lineup.is_over
