"""All that watches one run, behind one observer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio

from muarl.observe.counters import Counters
from muarl.observe.loop_lag import sample_loop_lag
from muarl.policy import EngineLoad, Policy
from muarl.record import Episode
from muarl.scheduler import EpisodePlan, Group, Observer
from muarl.tools import ToolServer
from muarl.user import User


class Observation(Observer):
    """Counters, and whatever else is to be told: a log, spans.

    Args:
        others: Told after the counters, in order. What they put around a policy, a user or a tool
            server lies around what those before them put there.
        secrets: Strings that must not appear in the words of a fault.

    Attributes:
        counters: What the run did so far.
    """

    def __init__(self, *others: Observer, secrets: Iterable[str] = ()) -> None:
        self.counters = Counters(secrets)
        self._all: tuple[Observer, ...] = (self.counters, *others)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Around all of a run's dialogues: samples the event loop meanwhile.

        What the block raises comes out in an exception group, as of any task group.
        """
        async with anyio.create_task_group() as side:
            side.start_soon(sample_loop_lag, self.counters.tick, name="loop lag")
            try:
                yield
            finally:
                side.cancel_scope.cancel()
                self.counters.cut()

    def attempt_started(self, plan: EpisodePlan) -> None:
        for observer in self._all:
            observer.attempt_started(plan)

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        for observer in self._all:
            observer.attempt_ended(plan, episode, retry_after_s)

    def group_whole(self, group: Group) -> None:
        for observer in self._all:
            observer.group_whole(group)

    def window_set(self, load: EngineLoad, window: int) -> None:
        for observer in self._all:
            observer.window_set(load, window)

    def policy(self, plan: EpisodePlan, policy: Policy) -> Policy:
        for observer in self._all:
            policy = observer.policy(plan, policy)
        return policy

    def user(self, plan: EpisodePlan, user: User) -> User:
        for observer in self._all:
            user = observer.user(plan, user)
        return user

    def server(self, plan: EpisodePlan, server: ToolServer) -> ToolServer:
        for observer in self._all:
            server = observer.server(plan, server)
        return server
