"""The gate: the state machine without an event loop, then the shell in virtual time."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.gate import Gate, Turns
from muarl.testing import run_in_virtual_time

LANES = st.sampled_from(["a", "b", "c"])


@given(places=st.integers(1, 4), steps=st.lists(st.tuples(st.integers(0, 2), LANES), max_size=60))
def test_never_more_inside_than_places_nobody_forgotten_and_no_place_idle_while_one_waits(
    places: int, steps: list[tuple[int, str]]
) -> None:
    turns = Turns(places)
    inside: list[tuple[int, str]] = []
    waiting: list[tuple[int, str]] = []
    for number, (step, lane) in enumerate(steps):
        if step == 0:
            ticket = (number, lane)
            (inside if turns.enter(ticket, lane) else waiting).append(ticket)
        elif step == 1 and inside:
            inside.pop(number % len(inside))
            following = turns.leave()
            assert (following is None) is (not waiting)
            if following is not None:
                same_lane = [ticket for ticket in waiting if ticket[1] == following[1]]
                assert following == same_lane[0], "first come, first served within a lane"
                waiting.remove(following)
                inside.append(following)
        elif step == 2 and waiting:
            ticket = waiting.pop(number % len(waiting))
            turns.give_up(ticket, ticket[1])
        assert turns.inside == len(inside) <= places
        assert turns.waiting == len(waiting)
        assert not waiting or len(inside) == places


@given(arrivals=st.lists(LANES, min_size=1, max_size=40))
def test_between_two_of_a_lane_every_other_lane_that_waits_gets_one(arrivals: list[str]) -> None:
    turns = Turns(1)
    assert turns.enter("first", "a")
    for number, lane in enumerate(arrivals):
        turns.enter((number, lane), lane)
    left = Counter(arrivals)
    served: list[str] = []
    while (ticket := turns.leave()) is not None:
        lane = ticket[1]
        since = served[::-1].index(lane) if lane in served else len(served)
        between = set(served[len(served) - since :])
        if lane in served:
            others = {other for other, count in left.items() if count and other != lane}
            assert others <= between, f"{lane} came twice before {others - between}"
        served.append(lane)
        left[lane] -= 1
    assert not left.total()


def test_a_gate_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one place"):
        Turns(0)


# Durations that are multiples, so that people leave, arrive and give up at the same instants.
SECONDS = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@settings(deadline=None, max_examples=80)
@given(
    places=st.integers(1, 3),
    visits=st.lists(st.tuples(SECONDS, SECONDS, SECONDS, LANES), max_size=12),
)
def test_whoever_gives_up_or_is_cancelled_inside_leaves_no_place_taken(
    places: int, visits: list[tuple[float, float, float, str]]
) -> None:
    gate = Gate(places)
    inside = most = 0

    async def visit(arrives: float, stays: float, patience: float, lane: str) -> None:
        nonlocal inside, most
        await anyio.sleep(arrives)
        with anyio.move_on_after(patience):
            async with gate.place(lane):
                inside += 1
                most = max(most, inside)
                try:
                    await anyio.sleep(stays)
                finally:
                    inside -= 1

    async def main() -> None:
        async with anyio.create_task_group() as visitors:
            for arrives, stays, patience, lane in visits:
                visitors.start_soon(visit, arrives, stays, patience, lane)
        # All are gone: whoever comes now goes straight through.
        for _ in range(places):
            assert gate.turns is not None
            assert gate.turns.enter(object(), "later")

    run_in_virtual_time(main)
    assert inside == 0
    assert most <= places
