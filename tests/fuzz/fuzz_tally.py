"""What fuzzing has seen: per target how many inputs, and what became of each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Tally:
    """Counts of one target.

    Attributes:
        inputs: Inputs that were tried.
        became: What became of them, such as "accepted" and "refused".
        slowest_s: CPU seconds of the slowest.
        last: The last input, to be looked at where it was one too many.
    """

    def __init__(self) -> None:
        self.inputs = 0
        self.became: Counter[str] = Counter()
        self.slowest_s = 0.0
        self.last: object = None

    def note(self, what: str) -> None:
        """One input was `what`."""
        self.became[what] += 1

    @contextmanager
    def one(self, what: object) -> Iterator[None]:
        """One input, `what`, is tried in the block."""
        begun = time.process_time()
        self.last = what
        self.inputs += 1
        try:
            yield
        finally:
            self.slowest_s = max(self.slowest_s, time.process_time() - begun)

    def __str__(self) -> str:
        became = ", ".join(f"{count} {what}" for what, count in sorted(self.became.items()))
        return f"{self.inputs} inputs ({became}); the slowest took {self.slowest_s:.2f} s of CPU"


TALLIES = {name: Tally() for name in ("specs", "calls", "worlds", "predicates")}
"""Target to what it has seen in this process."""

GUIDED: dict[str, str] = {}
"""Target to what a process of its own has seen, in words."""
