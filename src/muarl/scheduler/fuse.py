"""The fuse: stops a run in which something that all dialogues share is broken. No awaits here."""

from __future__ import annotations

from collections import Counter, deque

from muarl.errors import FaultRateError
from muarl.record import Episode

MIN_WINDOW = 64
"""Fewer attempts say too little about a rate."""

_MAX_ERRORS = 5
_MAX_ERROR_LENGTH = 280


class Fuse:
    """Watches the last attempts; one fuse may serve several rounds of rollouts.

    It blows when `MIN_WINDOW` attempts or more were seen and more than `max_fault_rate * window` of
    the last `window` were faults. With many dialogues live the window should be as wide as their
    number: faults come quicker than whole dialogues, so the first to finish are not a fair sample.

    Example, `max_fault_rate` 0.2 and `window` 256: an endpoint that is down blows it after 64
    attempts, since 64 > 51; one dialogue in ten failing at once never does, since 26 <= 51.

    Args:
        max_fault_rate: Share of faults that is borne, in [0, 1].
        window: How many attempts are looked back on.
    """

    def __init__(self, max_fault_rate: float, window: int = MIN_WINDOW) -> None:
        self._max_fault_rate = max_fault_rate
        self._window = max(window, MIN_WINDOW)
        # The error of each attempt, None where there was no fault.
        self._last: deque[str | None] = deque(maxlen=self._window)

    def observe(self, attempt: Episode) -> None:
        """Count one finished attempt.

        Raises:
            FaultRateError: Too many of the last were faults.
        """
        if not attempt.outcome.is_fault:
            self._last.append(None)
            return
        self._last.append(error_of(attempt))
        errors = Counter(error for error in self._last if error is not None)
        num_faults = errors.total()
        if len(self._last) >= MIN_WINDOW and num_faults > self._max_fault_rate * self._window:
            raise FaultRateError(self._message(errors, f"the last {len(self._last)} attempts"))

    def judge_round(self, errors: Counter[str], num_episodes: int) -> None:
        """Judge all final episodes of a round, however few: none of them hurried ahead of others.

        Args:
            errors: Of the faults among them; see `error_of`.
            num_episodes: How many there are, faults among them.

        Raises:
            FaultRateError: More than `max_fault_rate` of them are faults.
        """
        if errors.total() > self._max_fault_rate * num_episodes:
            raise FaultRateError(self._message(errors, f"{num_episodes} dialogues"))

    def _message(self, errors: Counter[str], of: str) -> str:
        num_faults = errors.total()
        shown = errors.most_common(_MAX_ERRORS)
        rate = f"{self._max_fault_rate:.0%}"
        lines = [
            f"{num_faults} of {of} were faults (limit {rate}):",
            *(f"  {count} x {error}" for error, count in shown),
        ]
        rest = num_faults - sum(count for _, count in shown)
        if rest:
            lines.append(f"  {rest} x other errors")
        lines.append(
            "Mend the cause, then resume or start anew; finished dialogues are in the journal."
        )
        return "\n".join(lines)


def error_of(fault: Episode) -> str:
    """What a fault says went wrong, short enough to be counted."""
    return fault.cause[:_MAX_ERROR_LENGTH]
