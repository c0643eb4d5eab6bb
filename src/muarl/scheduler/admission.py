"""Which dialogue runs next, and when a group is whole: a state machine without awaits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from muarl.record import Episode, EpisodeKey

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

    Every action that `take` hands out holds one of `concurrency` slots until `release`.

        take -> plan   run it, then finish -> a group if it was the last of one
        take -> group  it was whole already: nothing of it is to run
        take -> None   no slot is free, or nothing is left to start

    Nobody has to wait for a retry: it is queued by the very dialogue whose slot is next free.

    Args:
        keys: Dialogues; those of a group stand together. Read as slots become free.
        concurrency: Slots.
        attempts: How often a dialogue is tried that ends in a fault.
        done: Episodes of an earlier run, which are not run again.
    """

    def __init__(
        self,
        keys: Iterable[EpisodeKey],
        *,
        concurrency: int,
        attempts: int,
        done: Mapping[EpisodeKey, Episode],
    ) -> None:
        self._coming: Iterator[list[EpisodeKey]] = _grouped(keys)
        self._concurrency = concurrency
        self._attempts = attempts
        self._done = done
        self._fresh: deque[EpisodePlan] = deque()
        self._retries: deque[EpisodePlan] = deque()
        self._open: dict[GroupKey, _OpenGroup] = {}
        self._stopped = False
        self.slots_taken = 0

    def take(self) -> EpisodePlan | Group | None:
        """The next thing to do, if a slot is free for it."""
        if self._stopped or self.slots_taken >= self._concurrency:
            return None
        action = self._next()
        if action is not None:
            self.slots_taken += 1
        return action

    def _next(self) -> EpisodePlan | Group | None:
        if self._retries:
            return self._retries.popleft()
        if not self._fresh:
            keys = next(self._coming, None)
            if keys is None:
                return None
            group = _OpenGroup(keys)
            group.episodes.update((key, self._done[key]) for key in keys if key in self._done)
            self._open[keys[0].group] = group
            if group.is_whole:
                return self._close(keys[0].group)
            self._fresh.extend(EpisodePlan(key) for key in group.missing)
        return self._fresh.popleft()

    def tries_again(self, plan: EpisodePlan, episode: Episode) -> bool:
        """Queue another attempt if the episode is a fault and one is left."""
        if not episode.outcome.is_fault or plan.attempt >= self._attempts or self._stopped:
            return False
        self._retries.append(EpisodePlan(plan.key, plan.attempt + 1))
        return True

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
        """Keys without a final episode, in order; reads what was not yet asked for."""
        waiting = list(self._coming)
        self._coming = iter(waiting)
        opened = [key for group in self._open.values() for key in group.missing]
        return opened + [key for keys in waiting for key in keys if key not in self._done]


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
