"""How many dialogues may be live: follows the policy's engine. A state machine without awaits.

An engine is best used when it has as much to do as fits into its memory for keys and values, and no
more: less leaves it idle, more makes it throw contexts out and compute them again. Where that point
is depends on model, memory and how long the dialogues have become, so it is found as TCP finds the
width of a network path (Jacobson, 1988; RFC 5681): up while there is room, down at once where there
is none.

    reading                                             window
    preemptions since the last one                      times 0.7, at most once in 8 readings
    messages wait in the engine, or its memory is full  as it is
    neither, and as many dialogues live as may          double before the first preemption, later a
                                                        sixteenth more
"""

from __future__ import annotations

from collections.abc import Callable

from muarl.policy import EngineLoad

ReadLoad = Callable[[], EngineLoad | None]
"""How busy the policy's engine is now; None where it cannot say."""

PERIOD_S = 0.1
"""How often the load is read: several times during the shortest dialogues."""

_START = 256
"""What an engine is trusted with unread: `max_num_seqs` of vLLM, by default."""
_KV_FULL = 0.9
"""Beyond it the contexts that are live now may grow into preemption without anything new."""
_BACK_OFF = 0.7
"""Milder than TCP's half: a preempted message is late, a lost packet is lost."""
_SETTLE = 8
"""Readings after a decrease that change nothing further: what is live must end before it shows."""
_SHARE = 16
"""An increase is at most this part: it crosses no more than the room that `_KV_FULL` leaves."""


class Window:
    """The number of dialogues that may be live at once.

    Args:
        ceiling: The most there may ever be; without readings the window stays there.

    Attributes:
        size: The number now; in [1, ceiling].
    """

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self.size = ceiling
        self._doubling = True
        self._settling = 0
        self._preemptions: int | None = None

    def observe(self, load: EngineLoad, live: int) -> None:
        """Take in one reading.

        Args:
            load: The reading.
            live: Dialogues live now.
        """
        if self._preemptions is None:  # the first reading: this engine can be followed
            self.size = min(self._ceiling, max(_START, live))
            self._preemptions = load.preemptions
        preempted = load.preemptions > self._preemptions
        self._preemptions = load.preemptions
        if self._settling:
            self._settling -= 1
            return
        if preempted:
            # What is live counts, not what might have been.
            self.size = max(1, int(_BACK_OFF * min(self.size, max(live, 1))))
            self._doubling = False
            self._settling = _SETTLE
        elif not load.waiting and load.kv_use < _KV_FULL and live >= self.size:
            more = self.size if self._doubling else -(-self.size // _SHARE)
            self.size = min(self._ceiling, self.size + more)
