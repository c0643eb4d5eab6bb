"""Which group begins next, and which are learned from next: a state machine without awaits.

The plan is `iterations` cohorts of as many groups as an update is made from. After v updates the
weights are version v. What may be learned from in update v was sampled by version v - max_lag or later;
on policy is the case max_lag = 0. So that nothing grows older than that while it waits:

    groups of cohort c begin once the sampler has version c - max_lag;
    update v takes those first that would be too old for update v + 1, and waits for them.

At most (v + 1) * wanted groups begin before the sampler has a version after v - max_lag, and v * wanted
of them were learned from before update v: so those that are urgent are never more than it takes.

Of several processes (`Plan.is_mine`) each has a lineup of the whole plan, and samples its own groups of it.
Once those of a cohort are whole they are exchanged; so all lineups see the same groups in the same order, and
decide alike.

Invariants, each with a property test:
  1. every group of the plan is learned from once, or is named missing;
  2. each update takes `wanted` of them, those that are missing counted;
  3. under `wait` and `drop` none is learned from that was sampled more than `max_lag` versions ago;
  4. nothing stands still before the last update;
  5. what is learned from does not depend on how many processes there are.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from muarl.record import Episode, EpisodeKey
from muarl.scheduler import Group
from muarl.scheduler.admission import GroupKey
from muarl.train.plan import Batch, BatchRecord, Pace, Place, Plan, oldest_version

_log = logging.getLogger(__name__)


@dataclass
class _Cohort:
    order: Sequence[str]
    planned: int = 0
    rounds: int = 0
    underway: int = 0
    taught: int = 0
    missing: int = 0


@dataclass(frozen=True)
class _Ready:
    place: Place
    group: Group | None  # None: it is missing
    oldest: float

    @property
    def name(self) -> tuple[int, str, int]:
        return self.place.name


@dataclass
class _Past:
    """What an earlier process did."""

    trained: set[tuple[int, str, int]] = field(default_factory=set)
    missing: Counter[int] = field(default_factory=Counter)
    takes: Counter[tuple[int, str]] = field(default_factory=Counter)
    finished: set[int] = field(default_factory=set)
    coming: dict[int, BatchRecord] = field(default_factory=dict)


class Lineup:
    """Decides; see the module. A `GroupSource` of the scheduler.

    Args:
        plan: What is to be sampled.
        pace: How far sampling may run ahead.
        version: Of the weights to begin with: updates made already.
        records: Of the batches that an earlier process formed. Those of updates from `version` on are
            formed again as they were.
        done: Episodes of an earlier process.

    Attributes:
        version: Of the weights that learn and, unless they are being synced, sample.
    """

    def __init__(
        self,
        plan: Plan,
        pace: Pace,
        *,
        version: int = 0,
        records: Sequence[BatchRecord] = (),
        done: Mapping[EpisodeKey, Episode] | None = None,
    ) -> None:
        self._plan = plan
        self._pace = pace
        self._done = done or {}
        self._past = _past(records, version, plan.wanted)
        if not pace.in_flight:
            self._past.finished |= set(range(version))
        self._cohorts: dict[int, _Cohort] = {}
        self._next_cohort = 0
        self._queue: list[Place] = []
        self._open: dict[GroupKey, tuple[Place, float]] = {}
        self._elsewhere: dict[GroupKey, Place] = {}  # sampled by another process
        self._held: dict[GroupKey, tuple[Place, Group]] = {}  # whole, and not exchanged yet
        self._ready: list[_Ready] = []
        self._idle: list[tuple[Place, Group]] = []
        self._dropped: list[tuple[Place, Group]] = []
        self.version = version

    @property
    def is_over(self) -> bool:
        """Whether every update was made."""
        return self.version >= self._plan.cohorts

    @property
    def num_open(self) -> int:
        """Groups that have begun and are not whole."""
        return len(self._open)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way, here or elsewhere, and nothing may begin."""
        begun = self._open or self._queue or self._held or self._elsewhere
        return not begun and not self._may_begin()

    def next_group(self) -> list[EpisodeKey] | None:
        """Dialogues of the group that begins now: of the earliest cohort that wants one."""
        self._plan_ahead()
        if not self._queue:
            return None
        place = heapq.heappop(self._queue)
        keys = self._plan.keys(place)
        before = [self._done[key] for key in keys if key in self._done]
        self._open[keys[0].group] = place, min(self.version, oldest_version(before))
        return keys

    def _plan_ahead(self) -> None:
        while not self._queue and self._may_begin():
            self._plan_round(self._next_cohort)

    def _may_begin(self) -> bool:
        while self._next_cohort in self._past.finished:
            self._next_cohort += 1
        return self._next_cohort < min(self._plan.cohorts, self.version + self._pace.max_lag + 1)

    def _plan_round(self, number: int) -> None:
        """Want further groups of a cohort, or for the first time any."""
        if number not in self._cohorts:
            missing = self._past.missing[number]
            self._cohorts[number] = _Cohort(self._plan.tasks(number), missing=missing)
            self._next_cohort = number + 1
        cohort = self._cohorts[number]
        first = cohort.planned
        lacking = self._plan.wanted - cohort.taught - cohort.missing
        if not cohort.rounds:
            lacking = self._plan.wanted
        cohort.planned = min(len(cohort.order), first + lacking)
        cohort.rounds += 1
        for at in range(first, cohort.planned):
            task_id = cohort.order[at]
            cohort.underway += 1
            take = self._past.takes[number, task_id]
            place = Place(number, at, task_id, take)
            if self._plan.is_mine is None or self._plan.is_mine(place):
                heapq.heappush(self._queue, place)
            else:
                self._elsewhere[self._plan.keys(place)[0].group] = place

    def whole(self, group: Group) -> None:
        """A group that began is whole."""
        place, _ = self._open.pop(group.key)
        if self._plan.is_mine is None:
            self._settle(place, group)
        else:
            self._held[group.key] = place, group

    def to_exchange(self) -> list[Group] | None:
        """Of the earliest cohort that groups are awaited of, those sampled here, once all are whole.

        None while they are not, or when nothing is awaited from anybody.
        """
        if self._plan.is_mine is None:
            return None
        self._plan_ahead()
        number = min((n for n, cohort in self._cohorts.items() if cohort.underway), default=None)
        begun = [*self._queue, *(place for place, _ in self._open.values())]
        if number is None or any(place.cohort == number for place in begun):
            return None
        return [group for place, group in self._held.values() if place.cohort == number]

    def exchanged(self, groups: Iterable[Group]) -> None:
        """Those of all processes came."""
        found = []
        for group in groups:
            held = self._held.pop(group.key, None)
            found.append((held[0] if held else self._elsewhere.pop(group.key), group))
        for place, group in sorted(found, key=lambda one: one[0]):
            self._settle(place, group)

    def _settle(self, place: Place, group: Group) -> None:
        cohort = self._cohorts[place.cohort]
        cohort.underway -= 1
        if place.name in self._past.trained:
            cohort.taught += 1
        elif self._plan.teaches(group):
            cohort.taught += 1
            self._ready.append(_Ready(place, group, oldest_version(group.episodes)))
            self._drop_stale()
        else:
            self._idle.append((place, group))
        self._fill_up(place.cohort)

    def _fill_up(self, number: int) -> None:
        """Once a cohort's round is over, replace what teaches nothing, or do without."""
        cohort = self._cohorts[number]
        lacking = self._plan.wanted - cohort.taught - cohort.missing
        if cohort.underway or lacking <= 0:
            return
        is_empty = cohort.planned >= len(cohort.order)
        if not is_empty and cohort.rounds < self._plan.max_rounds:
            self._plan_round(number)
            return
        cohort.missing += lacking
        nowhere = Place(number, len(cohort.order), "")
        self._ready += [_Ready(nowhere, None, math.inf)] * lacking
        why = "no task is left" if is_empty else "dynamic_sampling.max_rounds"
        _log.warning(
            "iteration %d gives %d groups to learn from of %d wanted: in the others all earned the "
            "same, and after %d rounds there is no further one (%s)",
            number,
            cohort.taught,
            self._plan.wanted,
            cohort.rounds,
            why,
        )

    def next_batch(self) -> Batch | None:
        """What the next update is made from; None while that is not whole."""
        chosen = self._choose()
        if chosen is None:
            return None
        for one in chosen:
            self._ready.remove(one)
        chosen.sort(key=lambda one: one.place)
        self._idle.sort(key=lambda one: one[0])
        self._dropped.sort(key=lambda one: one[0])
        limit = self.version - self._pace.max_lag
        record = BatchRecord(
            self.version,
            [one.name for one in chosen if one.group is not None],
            [one.place.cohort for one in chosen if one.group is None],
            [place.name for place, _ in self._idle],
            [place.name for place, _ in self._dropped],
        )
        batch = Batch(
            self.version,
            [one.group for one in chosen if one.group is not None],
            [group for _, group in self._idle],
            [group for _, group in self._dropped],
            sum(one.oldest < limit for one in chosen),
            max(self._cohorts[one.place.cohort].rounds for one in chosen),
            record,
        )
        self._idle, self._dropped = [], []
        self._forget_done()
        return batch

    def _forget_done(self) -> None:
        held = {one.place.cohort for one in self._ready}
        held |= {place.cohort for place in self._queue}
        for number, cohort in list(self._cohorts.items()):
            if not cohort.underway and number not in held:
                del self._cohorts[number]

    def _choose(self) -> list[_Ready] | None:
        if self.is_over:
            return None
        before = self._past.coming.get(self.version)
        if before is not None:
            found = self._as_before(before)
            if found is not None or not self.is_quiet:
                return found
            _log.warning(
                "iteration %d learns from other groups than before: of those that it learned from "
                "when it was broken off, some are not in the journal",
                self.version,
            )
        wanted = self._plan.wanted
        if not self._pace.in_flight:
            mine = [one for one in self._ready if one.place.cohort == self.version]
            return mine if len(mine) == wanted else None
        limit = self.version - self._pace.max_lag
        if self._pace.stale == "wait" and any(began <= limit for _, began in self._open.values()):
            return None
        oldest_first = sorted(self._ready, key=lambda one: one.oldest)
        return oldest_first[:wanted] if len(oldest_first) >= wanted else None

    def _as_before(self, record: BatchRecord) -> list[_Ready] | None:
        """What a batch was made from that an earlier process formed, once it is whole again."""
        names = set(record.groups)
        found = [one for one in self._ready if one.group is not None and one.name in names]
        for cohort, count in Counter(record.missing).items():
            empty = [o for o in self._ready if o.group is None and o.place.cohort == cohort]
            found += empty[:count]
        return found if len(found) == len(record.groups) + len(record.missing) else None

    def advance(self) -> None:
        """An update was made, and the sampler has its weights."""
        self.version += 1
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Have those sampled anew that can never be learned from within the bound."""
        if self._pace.stale != "drop":
            return
        limit = self.version - self._pace.max_lag
        before = self._past.coming.get(self.version)
        for one in list(self._ready):
            if one.group is None or one.oldest >= limit:
                continue
            if before is not None and one.name not in before.dropped:
                continue
            self._ready.remove(one)
            self._dropped.append((one.place, one.group))
            cohort = self._cohorts[one.place.cohort]
            cohort.taught -= 1
            cohort.underway += 1
            heapq.heappush(self._queue, one.place._replace(take=one.place.take + 1))


def _past(records: Sequence[BatchRecord], version: int, wanted: int) -> _Past:
    past = _Past()
    places: Counter[int] = Counter()
    for record in records:
        if record.iteration >= version:
            past.coming[record.iteration] = record
            continue
        past.trained.update(record.groups)
        past.missing.update(record.missing)
        past.takes.update((cohort, task_id) for cohort, task_id, _ in record.dropped)
        places.update([cohort for cohort, *_ in record.groups] + record.missing)
    past.finished = {cohort for cohort, count in places.items() if count == wanted}
    return past
