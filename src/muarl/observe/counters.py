"""What a run did so far, in numbers: pure counting, no awaits.

Invariants, each with a property test:
  1. started = live + final + retried + cut, at every moment;
  2. the tokens sampled are those of the episodes that attempts gave, if none was cut off;
  3. what happened in a stretch of time is the difference of two snapshots.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import structs

from muarl.evaluate.summary import succeeded
from muarl.observe.counted import CountedPolicy, CountedServer, CountedUser
from muarl.observe.durations import Durations
from muarl.observe.snapshot import Activity, Snapshot, Totals
from muarl.observe.words import plain_words
from muarl.policy import EngineLoad, Policy
from muarl.record import Episode
from muarl.scheduler import EpisodePlan, Group, Observer
from muarl.tools import ToolServer
from muarl.user import User


class Counters(Observer):
    """Counts what it is told; `snapshot` may be called from any thread.

    Args:
        secrets: Strings that must not appear in the words of a fault.
        clock: Seconds; only differences count.
    """

    def __init__(
        self, secrets: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._secrets = tuple(secrets)
        self._clock = clock
        self._begun = clock()
        self._totals = Totals()
        self._policy, self._tools, self._users = Activity(), Activity(), Activity()
        self._outcomes: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._message_s = Durations()
        self._loop_lag = Durations()
        self._load: EngineLoad | None = None
        self._window: int | None = None
        self._last_fault = ""

    def snapshot(self) -> Snapshot:
        """Everything until now."""
        return Snapshot(
            seconds=self._clock() - self._begun,
            live=self._live,
            totals=structs.replace(self._totals),
            policy=structs.replace(self._policy),
            tools=structs.replace(self._tools),
            users=structs.replace(self._users),
            outcomes=dict(self._outcomes),
            faults=dict(self._faults),
            message_s=self._message_s.copy(),
            loop_lag=self._loop_lag.copy(),
            load=self._load,
            window=self._window,
            last_fault=self._last_fault,
        )

    def tick(self, lag_s: float) -> None:
        """Sample the run's state; the event loop woke the sampler `lag_s` late."""
        self._loop_lag.add(lag_s)
        t = self._totals
        if self._live:
            t.ticks += 1
            t.live_sum += self._live
            t.in_flight_sum += self._policy.now
            if self._load is not None:
                t.waiting_sum += self._load.waiting
                t.kv_use_sum += self._load.kv_use

    def cut(self) -> None:
        """Whatever is live now gives no episode any more: the run has ended."""
        self._totals.cut += self._live

    @property
    def _live(self) -> int:
        t = self._totals
        return t.started - t.final - t.retried - t.cut

    def attempt_started(self, plan: EpisodePlan) -> None:
        self._totals.started += 1

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        t = self._totals
        if episode.outcome.is_fault:
            kind = episode.fault or episode.outcome.value
            self._faults[kind] += 1
            self._last_fault = plain_words(f"{kind}: {episode.error}", self._secrets)
        if retry_after_s is not None:
            t.retried += 1
            return
        t.final += 1
        self._outcomes[episode.outcome.value] += 1
        if not episode.outcome.is_fault:
            t.kept_tokens += episode.num_sampled
        if episode.reward is not None:
            t.scored += 1
            t.succeeded += succeeded(episode)

    def group_whole(self, group: Group) -> None:
        self._totals.groups += 1

    def window_set(self, load: EngineLoad, window: int) -> None:
        before = self._load.preemptions if self._load else 0
        # A new engine counts from 0 again.
        self._totals.preemptions += max(load.preemptions - before, 0)
        self._load, self._window = load, window

    def policy(self, plan: EpisodePlan, policy: Policy) -> Policy:
        return CountedPolicy(policy, self._policy, self._totals, self._message_s, self._clock)

    def user(self, plan: EpisodePlan, user: User) -> User:
        return CountedUser(user, self._users)

    def server(self, plan: EpisodePlan, server: ToolServer) -> ToolServer:
        return CountedServer(server, self._tools, self._totals)
