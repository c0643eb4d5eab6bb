"""A gate: so many at once and no more, and those that wait are let in fairly.

`Turns` decides, without awaits; `Gate` is the thin shell in which tasks wait for what it decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from contextvars import ContextVar
from types import TracebackType

import anyio
import anyio.lowlevel

current_lane: ContextVar[Hashable] = ContextVar("muarl_lane", default=None)
"""Who waits, where a gate does not hear it from its caller: the task whose dialogue this is."""


class Turns:
    """Who may go through next: a state machine without awaits.

    Waiting tickets stand in one queue per lane (a lane is a task of the domain). Lanes take turns:
    between two tickets of a lane each other lane that waits gets one. So a task with many or long
    dialogues cannot keep the others out, whatever came first. Within a lane first come, first served.

        enter -> True   gone through; `leave` when done
        enter -> False  waits; `leave` of others lets it in, or `give_up`

    Args:
        places: How many may be inside at once.
    """

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ValueError(f"a gate needs at least one place, not {places}")
        self.places = places
        self.inside = 0
        self._lanes: dict[Hashable, deque[Hashable]] = {}
        self._order: deque[Hashable] = deque()

    @property
    def waiting(self) -> int:
        """Tickets that wait."""
        return sum(len(lane) for lane in self._lanes.values())

    def enter(self, ticket: Hashable, lane: Hashable) -> bool:
        """Go through if there is a place and nobody waits; else take a place in the queue."""
        if self.inside < self.places and not self._order:
            self.inside += 1
            return True
        queue = self._lanes.get(lane)
        if queue is None:
            queue = self._lanes[lane] = deque()
            self._order.append(lane)
        queue.append(ticket)
        return False

    def leave(self) -> Hashable | None:
        """Free a place; the ticket that is inside instead, if one waited."""
        if not self._order:
            self.inside -= 1
            return None
        lane = self._order.popleft()
        queue = self._lanes[lane]
        ticket = queue.popleft()
        if queue:
            self._order.append(lane)
        else:
            del self._lanes[lane]
        return ticket

    def give_up(self, ticket: Hashable, lane: Hashable) -> None:
        """Wait no longer."""
        queue = self._lanes[lane]
        queue.remove(ticket)
        if not queue:
            del self._lanes[lane]
            self._order.remove(lane)


class Gate:
    """Lets so many tasks in at once.

    Example:
        >>> async with gate.place("task-7"):
        ...     await policy.generate(request)

    Args:
        places: How many; None lets everybody in.
    """

    def __init__(self, places: int | None = None) -> None:
        self.turns = Turns(places) if places is not None else None

    def place(self, lane: Hashable) -> Place:
        """A place inside for the length of an `async with`, waited for if there is none."""
        return Place(self.turns, lane)


class Place:
    """One stay inside a gate."""

    __slots__ = ("_lane", "_let_in", "_turns")

    def __init__(self, turns: Turns | None, lane: Hashable) -> None:
        self._turns = turns
        self._lane = lane
        self._let_in: anyio.Event | None = None

    async def __aenter__(self) -> None:
        turns = self._turns
        if turns is None or turns.enter(self, self._lane):
            return
        self._let_in = anyio.Event()
        try:
            await self._let_in.wait()
        except BaseException:  # cancelled: waiting still, or let in at the same instant
            if self._let_in.is_set():
                self._leave(turns)
            else:
                turns.give_up(self, self._lane)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._turns is not None:
            self._leave(self._turns)

    @staticmethod
    def _leave(turns: Turns) -> None:
        following = turns.leave()
        if isinstance(following, Place) and following._let_in is not None:
            following._let_in.set()
