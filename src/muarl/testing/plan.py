"""Which calls fail, and how: drawn from a seed, so that a run with faults can be run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from muarl.seeds import generator

Fault = TypeVar("Fault", bound=str)


class FaultPlan(Generic[Fault]):
    """Lets a share of all calls fail, each in one of several ways.

    What becomes of a call follows from the seed, from what the call is about, and from how often
    that was asked before: not from what runs beside it. A retry draws anew.

    Args:
        faults: Ways to fail, drawn evenly.
        rate: Share of calls that fail, in [0, 1].
        seed: Of all draws.

    Attributes:
        rate: As given; may be set anew, so that a start goes well, say.
        drawn: How often each fault was drawn.
        calls: How many calls there were.

    Example:
        >>> plan = FaultPlan(["reset", "slow"], rate=0.2, seed=7)
        >>> plan.draw("train/0/task-1/0")  # a fault, or None in four cases of five
    """

    def __init__(self, faults: Iterable[Fault], *, rate: float, seed: int = 0) -> None:
        self._faults = tuple(faults)
        if not self._faults or not 0 <= rate <= 1:
            raise ValueError(f"a plan needs faults and a rate in [0, 1], not {faults!r}, {rate!r}")
        self.rate = rate
        self._seed = seed
        self._asked: Counter[Hashable] = Counter()
        self.drawn: Counter[Fault] = Counter()

    @property
    def calls(self) -> int:
        return self._asked.total()

    def draw(self, call: Hashable) -> Fault | None:
        """What happens to this call: a fault, or None.

        Args:
            call: What it is about. Equal calls are told apart by their order.
        """
        self._asked[call] += 1
        rng = generator(self._seed, repr(call), self._asked[call])
        if rng.random() >= self.rate:
            return None
        fault = rng.choice(self._faults)
        self.drawn[fault] += 1
        return fault
