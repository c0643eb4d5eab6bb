"""The fuse, as a plain counter."""

from __future__ import annotations

import pytest

from muarl.errors import FaultRateError
from muarl.record import Outcome
from muarl.scheduler import Fuse
from muarl.testing import build_episode

GOOD = build_episode(num_turns=0)


def observe(fuse: Fuse, good: int = 0, faults: int = 0, error: str = "down") -> None:
    fault = build_episode(outcome=Outcome.INFRA_FAULT, error=error, num_turns=0)
    for attempt in [GOOD] * good + [fault] * faults:
        fuse.observe(attempt)


def test_it_does_not_blow_before_64_attempts_whatever_their_outcome() -> None:
    fuse = Fuse(0.0)
    observe(fuse, faults=63)
    with pytest.raises(FaultRateError):
        observe(fuse, faults=1)


def test_it_bears_exactly_its_rate() -> None:
    fuse = Fuse(0.25)
    observe(fuse, good=48, faults=16)
    with pytest.raises(FaultRateError, match="17 of the last 64"):
        observe(fuse, faults=1)


def test_it_forgets_what_is_further_back_than_its_window() -> None:
    fuse = Fuse(0.25)
    for _ in range(10):
        observe(fuse, faults=10)
        observe(fuse, good=54)


def test_faults_that_come_first_because_they_are_quick_do_not_blow_a_wide_one() -> None:
    fuse = Fuse(0.2, window=256)
    observe(fuse, faults=26)
    observe(fuse, good=38)
    observe(fuse, faults=25)
    with pytest.raises(FaultRateError, match="52 of the last 90"):
        observe(fuse, faults=1)


def test_a_rate_of_one_never_blows() -> None:
    observe(Fuse(1.0), faults=1000)


def test_it_names_the_five_commonest_errors_and_counts_the_rest() -> None:
    fuse = Fuse(0.1, window=100)
    observe(fuse, good=64)
    for i in range(5):
        observe(fuse, faults=2, error=f"error {i} " + "x" * 10_000)
    with pytest.raises(FaultRateError) as caught:
        observe(fuse, faults=1, error="rare")
    lines = str(caught.value).splitlines()
    assert lines[0] == "11 of the last 75 attempts were faults (limit 10%):"
    assert [line[:14] for line in lines[1:6]] == [f"  2 x error {i} " for i in range(5)]
    assert lines[6] == "  1 x other errors"
    assert all(len(line) < 300 for line in lines)
