"""Which dialogues a rollout consists of, and how they are divided among machines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from muarl.record import EpisodeKey
from muarl.scheduler.dialogues import episode_keys
from muarl.spec import TaskSpec

PHASE = "rollout"


class Shard(msgspec.Struct, frozen=True):
    """One of several equal parts of a rollout.

    Attributes:
        number: Which, from 1.
        count: How many there are.
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ValueError(f"there is no shard {self}; of {self.count}, the first is 1")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def rollout_keys(
    tasks: Sequence[TaskSpec], episodes: int, *, group_size: int, run_seed: int
) -> list[EpisodeKey]:
    """Keys of a rollout: groups of equal size, on each task in turn; a new round is an iteration.

    Example:
        Two tasks, six dialogues in groups of two: iteration 0 of a, iteration 0 of b, and
        iteration 1 of a, each twice.

    Raises:
        ValueError: The dialogues do not come out as whole groups.
    """
    if episodes % group_size:
        raise ValueError(f"{episodes} dialogues are no whole number of groups of {group_size}")
    groups = episodes // group_size
    return [
        key
        for first in range(0, groups, len(tasks))
        for key in episode_keys(
            tasks[: groups - first],
            run_seed=run_seed,
            phase=PHASE,
            iteration=first // len(tasks),
            group_size=group_size,
        )
    ]


def keys_of_shard(keys: Sequence[EpisodeKey], shard: Shard) -> list[EpisodeKey]:
    """The part of a rollout that is one shard's: every so-manyth group, whole.

    The shards together are the rollout. A key draws the same seeds in whichever shard it is, so
    that they give the very episodes that the rollout gives undivided.
    """
    groups = [list(members) for _, members in groupby(keys, key=lambda key: key.group)]
    return [key for group in groups[shard.number - 1 :: shard.count] for key in group]
