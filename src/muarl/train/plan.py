"""What is to be sampled and learned from: the words in which `muarl.train.lineup` decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from muarl.record import Episode, EpisodeKey
from muarl.scheduler import Group
from muarl.spec import GrpoSpec


class Pace(NamedTuple):
    """How far sampling may run ahead of learning.

    Attributes:
        max_lag: Versions between the weights that sampled and those that learn, at most.
        in_flight: New weights are taken in the middle of dialogues, and groups are learned from as
            they become whole. Otherwise weights change while nothing is sampled, and update v learns
            from cohort v: what comes of it does not depend on how long anything takes.
        stale: Of groups that would be too old: waited for, sampled anew, or learned from all the same.
    """

    max_lag: int = 0
    in_flight: bool = False
    stale: Literal["wait", "drop", "correct"] = "wait"


def pace_of(spec: GrpoSpec) -> Pace:
    """What a run file says of it."""
    if (free := spec.mode.asynchronous) is not None:
        return Pace(free.max_lag, True, free.stale)
    return Pace(0 if spec.mode.one_step_off is None else 1)


class Place(NamedTuple):
    """A group of the plan.

    Attributes:
        cohort: Counted from 0.
        number: Of its task in the cohort's order of tasks.
        task_id: The task.
        take: How often it was sampled already and became too old.
    """

    cohort: int
    number: int
    task_id: str
    take: int = 0

    @property
    def name(self) -> tuple[int, str, int]:
        """What tells it from all others."""
        return self.cohort, self.task_id, self.take


class BatchRecord(msgspec.Struct, frozen=True):
    """What an update is made from, written down before it is made.

    A run that is taken up learns from the same again, and knows what else it has learned from.

    Attributes:
        iteration: Number of the update's iteration.
        groups: Cohort, task and take of each group.
        missing: Cohorts of those that are not there.
        idle: Of what became whole since the batch before, and teaches nothing.
        dropped: Of what became too old since the batch before.
    """

    iteration: int
    groups: list[tuple[int, str, int]]
    missing: list[int] = []
    idle: list[tuple[int, str, int]] = []
    dropped: list[tuple[int, str, int]] = []


class Batch(NamedTuple):
    """What an update is made from, and what else became whole since the batch before.

    Attributes:
        iteration: Its number.
        groups: To be learned from, in the order of the plan.
        idle: Groups in which all earned the same, where those are replaced.
        dropped: Groups that became too old.
        stale: Groups of `groups` that are older than `max_lag`.
        rounds: Rounds of replacing it took.
        record: To be written down before it is learned from.
    """

    iteration: int
    groups: list[Group]
    idle: list[Group]
    dropped: list[Group]
    stale: int
    rounds: int
    record: BatchRecord

    @property
    def all_groups(self) -> list[Group]:
        """All that became whole and is accounted for here."""
        return [*self.groups, *self.idle, *self.dropped]


@dataclass(frozen=True)
class Plan:
    """What is to be sampled.

    Attributes:
        cohorts: How many.
        wanted: Groups of each that are learned from.
        tasks: Ids of a cohort's tasks, in the order in which they are taken: the first `wanted`, and
            then what replaces groups that teach nothing.
        keys: The dialogues of a group.
        teaches: Whether a group need not be replaced.
        max_rounds: Rounds of replacing, the first included.
        is_mine: Whether this process samples a group; another one does otherwise, and its groups
            come when they are exchanged.
    """

    cohorts: int
    wanted: int
    tasks: Callable[[int], Sequence[str]]
    keys: Callable[[Place], list[EpisodeKey]]
    teaches: Callable[[Group], bool] = lambda _group: True
    max_rounds: int = 1
    is_mine: Callable[[Place], bool] | None = None


def oldest_version(episodes: Sequence[Episode]) -> float:
    """Of the weights that sampled any of their tokens; infinite where nothing was sampled."""
    return min(
        (s.policy_version for e in episodes for sample in e.samples for s in sample.spans),
        default=math.inf,
    )
