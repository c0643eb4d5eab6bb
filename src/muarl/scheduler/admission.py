"""Which dialogue runs next, and when a group is whole: a state machine without awaits."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, groupby
from typing import Protocol, runtime_checkable

import msgspec

from muarl.record import Episode, EpisodeKey
from muarl.scheduler.backoff import retry_wait_s

GroupKey = tuple[str, int, str]
"""Phase, iteration and task: `EpisodeKey.group`."""


class EpisodePlan(msgspec.Struct, frozen=True):
    """A dialogue to run.

    Attributes:
        key: Whose episode it gives.
        attempt: 1 for the first try. All tries have the same key.
    """

    key: EpisodeKey
    attempt: int = 1


class Group(msgspec.Struct, frozen=True):
    """All episodes of one task that share a baseline.

    Attributes:
        key: Phase, iteration and task.
        episodes: In the order they were planned. Faults that outlasted their attempts are among
            them, with their outcome; they are to be left out of mean, deviation and loss.
    """

    key: GroupKey
    episodes: tuple[Episode, ...]

    @property
    def num_faults(self) -> int:
        """Episodes that are not to be scored or trained on."""
        return sum(episode.outcome.is_fault for episode in self.episodes)


@runtime_checkable
class GroupSource(Protocol):
    """Decides which group begins next, whenever there is a place for a dialogue of one."""

    def next_group(self) -> list[EpisodeKey] | None:
        """Keys of the group that begins now; None if none may.

        A group may come again under the same key once it was whole, with other dialogues.
        """
        ...

    @property
    def is_over(self) -> bool:
        """Whether no group begins any more."""
        ...


class _Listed:
    """Groups that are known from the start."""

    def __init__(self, keys: Iterable[EpisodeKey]) -> None:
        self._groups: Iterator[list[EpisodeKey]] = _grouped(keys)
        self.is_over = False

    def next_group(self) -> list[EpisodeKey] | None:
        group = next(self._groups, None)
        self.is_over = group is None
        return group

    def rest(self) -> list[EpisodeKey]:
        waiting = list(self._groups)
        self._groups = iter(waiting)
        return [key for keys in waiting for key in keys]


class _OpenGroup:
    """A group of which some dialogue is still to finish."""

    def __init__(self, keys: list[EpisodeKey]) -> None:
        self.keys = keys
        self.episodes: dict[EpisodeKey, Episode] = {}

    @property
    def is_whole(self) -> bool:
        return len(self.episodes) == len(self.keys)

    @property
    def missing(self) -> list[EpisodeKey]:
        return [key for key in self.keys if key not in self.episodes]


class Admission:
    """Hands out dialogues group by group, so that early groups are whole early.

    Every action that `take` hands out holds one slot until `release`.

        take -> plan   run it, then finish -> a group if it was the last of one
        take -> group  it was whole already: nothing of it is to run
        take -> None   no slot is free, or nothing may start yet; see `next_retry_s` and `is_over`

    A dialogue that ended in a fault is tried again before anything fresh, once its wait is over. It
    holds no slot meanwhile. It is not tried again after its first effect: what it did outside its
    own world would be done twice.

    Args:
        keys: Dialogues; those of a group stand together. Read as slots become free. Or what decides
            group by group.
        concurrency: Slots.
        attempts: How often a dialogue is tried that ends in a fault.
        done: Episodes of an earlier run, which are not run again.
        first_wait_s: Seconds before the second attempt, at most; see `retry_wait_s`.

    Attributes:
        concurrency: Slots; may be set at any time. What runs is not called back.
        slots_taken: Slots that hold an action now.
    """

    def __init__(
        self,
        keys: Iterable[EpisodeKey] | GroupSource,
        *,
        concurrency: int,
        attempts: int,
        done: Mapping[EpisodeKey, Episode],
        first_wait_s: float = 0.0,
    ) -> None:
        self._coming = keys if isinstance(keys, GroupSource) else _Listed(keys)
        self._attempts = attempts
        self._done = done
        self._first_wait_s = first_wait_s
        self._fresh: deque[EpisodePlan] = deque()
        # Due time, order of arrival, plan.
        self._retries: list[tuple[float, int, EpisodePlan]] = []
        self._arrivals = count()
        self._open: dict[GroupKey, _OpenGroup] = {}
        self._stopped = False
        self.concurrency = concurrency
        self.slots_taken = 0

    def take(self, now: float = 0.0) -> EpisodePlan | Group | None:
        """The next thing to do at time `now`, if a slot is free for it."""
        if self._stopped or self.slots_taken >= self.concurrency:
            return None
        action = self._next(now)
        if action is not None:
            self.slots_taken += 1
        return action

    def _next(self, now: float) -> EpisodePlan | Group | None:
        if self._retries and self._retries[0][0] <= now:
            return heapq.heappop(self._retries)[2]
        if not self._fresh:
            keys = self._coming.next_group()
            if keys is None:
                return None
            group = _OpenGroup(keys)
            group.episodes.update((key, self._done[key]) for key in keys if key in self._done)
            self._open[keys[0].group] = group
            if group.is_whole:
                return self._close(keys[0].group)
            self._fresh.extend(EpisodePlan(key) for key in group.missing)
        return self._fresh.popleft()

    @property
    def next_retry_s(self) -> float | None:
        """Until when to wait for a retry to become due; None where no time to come starts one.

        None too while no slot is free: then a release starts it, and time does not.
        """
        if not self._retries or self._stopped or self.slots_taken >= self.concurrency:
            return None
        return self._retries[0][0]

    @property
    def is_over(self) -> bool:
        """Whether nothing holds a slot and nothing will: `take` never gives anything again."""
        return not self.slots_taken and (
            self._stopped or (self._coming.is_over and not self._fresh and not self._retries)
        )

    def tries_again(self, plan: EpisodePlan, episode: Episode, now: float = 0.0) -> float | None:
        """Queue another attempt if the episode is a fault, had no effect, and an attempt is left.

        Returns:
            Seconds until the attempt may begin; None if there is none.
        """
        if not episode.outcome.is_fault or episode.effect or self._stopped:
            return None
        if plan.attempt >= self._attempts:
            return None
        wait_s = retry_wait_s(plan.key, plan.attempt, self._first_wait_s)
        again = EpisodePlan(plan.key, plan.attempt + 1)
        heapq.heappush(self._retries, (now + wait_s, next(self._arrivals), again))
        return wait_s

    def finish(self, episode: Episode) -> Group | None:
        """Keep an episode; the group, if that makes it whole."""
        key = episode.key.group
        self._open[key].episodes[episode.key] = episode
        return self._close(key) if self._open[key].is_whole else None

    def _close(self, key: GroupKey) -> Group:
        group = self._open.pop(key)
        return Group(key, tuple(group.episodes[k] for k in group.keys))

    def release(self) -> None:
        """Give a slot back."""
        self.slots_taken -= 1

    def stop(self) -> None:
        """Start nothing more, not even another attempt."""
        self._stopped = True

    def unfinished(self) -> list[EpisodeKey]:
        """Keys without a final episode, in order; of a list also those not yet asked for."""
        opened = [key for group in self._open.values() for key in group.missing]
        rest = self._coming.rest() if isinstance(self._coming, _Listed) else []
        return opened + [key for key in rest if key not in self._done]


def _grouped(keys: Iterable[EpisodeKey]) -> Iterator[list[EpisodeKey]]:
    """Runs of keys with the same group.

    Raises:
        ValueError: A key comes twice, or a group comes back after another.
    """
    seen: set[GroupKey] = set()
    for group, members in groupby(keys, key=lambda key: key.group):
        if group in seen:
            raise ValueError(f"group {group} comes twice; give the keys of a group together")
        seen.add(group)
        together = list(members)
        if len(set(together)) < len(together):
            raise ValueError(f"group {group} has the same key twice: {together}")
        yield together
