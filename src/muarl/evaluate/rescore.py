"""Score stored episodes anew, by predicates of today; needs no model and no user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec
from msgspec import structs

from muarl.data.stored import StoredTasks, judged_again
from muarl.errors import RewardError
from muarl.evaluate.statistics import Interval, success_rate
from muarl.evaluate.summary import succeeded
from muarl.record import Episode
from muarl.spec import RewardFile
from muarl.suite import AnyDomain


class Rescored(msgspec.Struct, frozen=True):
    """What scoring anew made of the episodes of one phase.

    Attributes:
        phase: Which.
        n: Episodes that were scored.
        faults: Episodes that were not: they ended by no doing of the policy.
        before: Success as recorded.
        after: Success now.
        gained: Episodes that succeed only now.
        lost: Episodes that succeeded only before.
    """

    phase: str
    n: int
    faults: int
    before: Interval
    after: Interval
    gained: int
    lost: int


async def rescore(
    domain: AnyDomain,
    episodes: Iterable[Episode],
    keep: Callable[[Episode], None],
    *,
    predicates: RewardFile | None = None,
) -> list[Rescored]:
    """Score each episode by the worlds that it recorded.

    What happened is taken from the record: calls, answers and changes. Only what it is worth is
    found anew, with the gold calls of today. Faults are kept as they are.

    Args:
        domain: The domain; its predicates count, and the tasks' own.
        episodes: Gone through once, one at a time.
        keep: Takes each episode with its new reward.
        predicates: Count instead.

    Returns:
        One entry for each phase, in the order in which they came.

    Raises:
        RecordError: A task or the domain's world are not those that an episode was played in.
        RewardError: A predicate could not be evaluated; names the episode.
        ToolServerError: A gold call was answered with an error.
    """
    tasks = StoredTasks(domain)
    phases: dict[str, _Phase] = {}
    for episode in episodes:
        phase = phases.setdefault(episode.key.phase, _Phase())
        if episode.outcome.is_fault:
            phase.faults += 1
            keep(episode)
            continue
        task, worlds = tasks.of(episode), tasks.worlds(episode)
        try:
            verdict = await judged_again(domain, task, episode, worlds, predicates)
        except RewardError as error:
            raise RewardError(f"{episode.key}: {error}") from error
        rescored = structs.replace(
            episode, reward=verdict.reward, rewards=verdict.rewards, metrics=verdict.metrics
        )
        phase.count(episode, rescored)
        keep(rescored)
    return [phase.result(name) for name, phase in phases.items()]


class _Phase:
    """Tallies of one phase."""

    def __init__(self) -> None:
        self.faults = 0
        self._before: defaultdict[str, list[bool]] = defaultdict(list)
        self._after: defaultdict[str, list[bool]] = defaultdict(list)

    def count(self, old: Episode, new: Episode) -> None:
        self._before[old.key.task_id].append(succeeded(old))
        self._after[old.key.task_id].append(succeeded(new))

    def result(self, name: str) -> Rescored:
        pairs = [
            (was, now)
            for task, before in self._before.items()
            for was, now in zip(before, self._after[task], strict=True)
        ]
        return Rescored(
            phase=name,
            n=len(pairs),
            faults=self.faults,
            before=success_rate(self._before),
            after=success_rate(self._after),
            gained=sum(now and not was for was, now in pairs),
            lost=sum(was and not now for was, now in pairs),
        )
