"""A circuit breaker: an endpoint that fails again and again is left alone for a while.

A pure state machine: it is told the time and what happened, and awaits nothing.

    closed ──(`failures` failures in a row)──> open ──(its rest is over)──> on trial
      ^                                         ^                              │
      └─────────(the trial succeeded)───────────┼──────────────────────────────┤
                                                └──(the trial failed: it rests twice as long)

Invariants (property tests):
  1. closed, it admits everything;
  2. open, it admits nothing until its rest is over;
  3. on trial, it admits one request, and the next only when that one has been reported;
  4. what was admitted before it opened changes nothing afterwards;
  5. a rest is never longer than `longest_rest_s`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

_FAILURES = 8
_FIRST_REST_S = 1.0
_LONGEST_REST_S = 30.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one request; reported exactly once.

    Attributes:
        round: How often the breaker had opened when it was given.
    """

    round: int


class Breaker:
    """Of one endpoint.

    Args:
        failures: So many in a row open it. At a fault rate of a fifth, as many requests that fail
            by chance come together once in 400,000.
        first_rest_s: How long it then stays open.
        longest_rest_s: To which the rests double, trial by trial.
    """

    def __init__(
        self,
        *,
        failures: int = _FAILURES,
        first_rest_s: float = _FIRST_REST_S,
        longest_rest_s: float = _LONGEST_REST_S,
    ) -> None:
        self._allowed = failures
        self._first_rest_s = first_rest_s
        self._longest_rest_s = longest_rest_s
        self._round = 0
        self._failures = 0
        self._rest_s = first_rest_s
        self._rests_until: float | None = None  # None: closed
        self._trial: Permit | None = None

    def wait_s(self, now: float) -> float:
        """Seconds until it may admit: 0 now, infinite while a trial is not yet reported."""
        if self._rests_until is None:
            return 0.0
        if self._trial is not None:
            return inf
        return max(0.0, self._rests_until - now)

    def admit(self, now: float) -> Permit | None:
        """Leave to send one request now, or None."""
        if self.wait_s(now) > 0:
            return None
        permit = Permit(self._round)
        if self._rests_until is not None:
            self._trial = permit
        return permit

    def succeeded(self, permit: Permit) -> None:
        """The request was answered."""
        if permit.round == self._round:
            self._failures = 0
            self._rest_s = self._first_rest_s
            self._rests_until = self._trial = None

    def failed(self, permit: Permit, now: float) -> None:
        """The request was not answered, or not as it should be."""
        if permit.round != self._round:
            return
        self._failures += 1
        if self._trial is not None:
            self._rest_s = min(2 * self._rest_s, self._longest_rest_s)
        elif self._failures < self._allowed:
            return
        self._rests_until = now + self._rest_s
        self._trial = None
        self._round += 1

    def withdrawn(self, permit: Permit) -> None:
        """The request was given up for reasons of ours; it says nothing about the endpoint."""
        if permit is self._trial:
            self._trial = None
