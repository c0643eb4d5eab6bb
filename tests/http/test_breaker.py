"""The circuit breaker: a pure state machine, against a plain account of what it should do."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from muarl.http.breaker import Breaker, Permit

FIRST_REST_S, LONGEST_REST_S = 1.0, 8.0


class Told(RuleBasedStateMachine):
    """Requests begin and end in any order; the account below is kept beside the machine's own."""

    permits = Bundle("permits")

    @initialize(failures=st.integers(1, 4))
    def begin(self, failures: int) -> None:
        self.breaker = Breaker(
            failures=failures, first_rest_s=FIRST_REST_S, longest_rest_s=LONGEST_REST_S
        )
        self.allowed = failures
        self.now = 0.0
        self.in_a_row = 0
        self.rests_until: float | None = None
        self.rest_s = FIRST_REST_S
        self.trial: Permit | None = None
        self.before: set[int] = set()  # permits given before it opened last
        self.out: dict[int, Permit] = {}

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 4.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=permits)
    def request(self) -> Permit | None:
        permit = self.breaker.admit(self.now)
        if self.rests_until is None:
            assert permit is not None, "closed, it admits everything"
        elif self.trial is not None or self.now < self.rests_until:
            assert permit is None, "open or on trial, it admits nothing more"
        else:
            assert permit is not None, "its rest is over"
            self.trial = permit
        if permit is not None:
            self.out[id(permit)] = permit
        return permit

    @rule(permit=consumes(permits))
    def success(self, permit: Permit | None) -> None:
        if permit is None:
            return
        self.breaker.succeeded(permit)
        if id(self.out.pop(id(permit))) not in self.before:
            self.in_a_row, self.rests_until, self.trial = 0, None, None
            self.rest_s = FIRST_REST_S
        self.before.discard(id(permit))

    @rule(permit=consumes(permits))
    def failure(self, permit: Permit | None) -> None:
        if permit is None:
            return
        self.breaker.failed(permit, self.now)
        del self.out[id(permit)]
        if id(permit) in self.before:
            self.before.discard(id(permit))
            return
        self.in_a_row += 1
        if self.trial is not None:
            self.rest_s = min(2 * self.rest_s, LONGEST_REST_S)
        elif self.in_a_row < self.allowed:
            return
        self.rests_until, self.trial = self.now + self.rest_s, None
        self.before = set(self.out)

    @rule(permit=consumes(permits))
    def given_up(self, permit: Permit | None) -> None:
        if permit is None:
            return
        self.breaker.withdrawn(permit)
        del self.out[id(permit)]
        self.before.discard(id(permit))
        if permit is self.trial:
            self.trial = None

    @invariant()
    def it_says_how_long_to_wait(self) -> None:
        if not hasattr(self, "breaker"):
            return
        if self.rests_until is None:
            expected = 0.0
        else:
            expected = inf if self.trial else max(0.0, self.rests_until - self.now)
        assert self.breaker.wait_s(self.now) == expected


TestTold = Told.TestCase


@given(st.integers(1, 12))
def test_rests_double_up_to_the_longest(trials: int) -> None:
    breaker = Breaker(failures=1, first_rest_s=1.0, longest_rest_s=8.0)
    now, rests = 0.0, []
    for _ in range(trials):
        permit = breaker.admit(now)
        assert permit is not None
        breaker.failed(permit, now)
        rests.append(breaker.wait_s(now))
        now += rests[-1]
    assert rests == [1.0, 2.0, 4.0, *[8.0] * 9][:trials]


def test_failures_by_chance_do_not_open_it() -> None:
    breaker = Breaker(failures=3)
    for number in range(30):
        permit = breaker.admit(0.0)
        assert permit is not None
        if number % 3 == 2:
            breaker.succeeded(permit)
        else:
            breaker.failed(permit, 0.0)
    assert breaker.wait_s(0.0) == 0
