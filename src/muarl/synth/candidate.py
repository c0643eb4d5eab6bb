"""A dialogue that is looked at, with what its record says of the worlds before and after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from muarl.data.stored import StoredTasks
from muarl.domain import Domain
from muarl.record import Episode
from muarl.reward import Evidence
from muarl.spec import TaskSpec
from muarl.world import World


class Ruling(msgspec.Struct, frozen=True):
    """What a judge found.

    Attributes:
        judge: Model that ruled.
        family: Its own.
        criterion: What it was asked.
        holds: Whether it does.
        evidence: The passage of the dialogue that it was decided by.
        reason: In a sentence.
    """

    judge: str
    family: str
    criterion: str
    holds: bool
    evidence: str
    reason: str


@dataclass(frozen=True)
class Candidate:
    """One dialogue of a domain.

    Attributes:
        domain: That it was played in.
        tasks: Its tasks.
        episode: The record.
        rulings: Of judges that read it, as far as there are any.
    """

    domain: Domain
    tasks: StoredTasks
    episode: Episode
    rulings: list[Ruling] = field(default_factory=list)

    @cached_property
    def task(self) -> TaskSpec:
        """The task it was played on.

        Raises:
            RecordError: The domain has no such task any more, or another one by that name.
        """
        return self.tasks.of(self.episode)

    @cached_property
    def worlds(self) -> tuple[World, World]:
        """The worlds before and after it, by its record.

        Raises:
            RecordError: The domain's world is not the one that it was played in.
        """
        return self.tasks.worlds(self.episode)

    async def evidence(self) -> Evidence:
        """What predicates may look at.

        Raises:
            ToolServerError: A gold call was answered with an error.
        """
        initial, final = self.worlds
        gold = await self.domain.gold_world(self.task)
        return self.domain.evidence(final, gold, self.episode.turns, self.episode.opening, initial)
