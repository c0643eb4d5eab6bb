"""Several processes that share out the dialogues of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from muarl.scheduler.admission import Group

T = TypeVar("T")


class Crew(Protocol):
    """The processes, as one of them sees them. All of them plan the same groups in the same order.

    Attributes:
        rank: This one, counted from 0.
        size: How many there are.
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    async def exchange(self, groups: Sequence[Group]) -> list[Group]:
        """Wait until each process gives whole groups; all of them. Every process calls, and as often."""
        ...


def own_share(crew: Crew | None, planned: Sequence[T]) -> Sequence[T]:
    """What of a plan this process does, one of so many in turn.

    2 processes, a b c d e   ->   rank 0: a c e, rank 1: b d
    """
    return planned if crew is None else planned[crew.rank :: crew.size]


def own_concurrency(crew: Crew | None, concurrency: int) -> int:
    """Dialogues that may be live here, of so many in all processes."""
    return concurrency if crew is None else max(1, concurrency // crew.size)
