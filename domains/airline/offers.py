"""Which flights there are, and which of them a traveller means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .world import CABINS

Offer = dict[str, Any]
CHANGE_MINUTES = 45
"""Least time between two flights of a connection."""


def direct(world: Any, origin: str, destination: str, date: str) -> Iterator[list[Offer]]:
    """Journeys of one flight that can be booked."""
    numbers = world["airports"].get(origin, {}).get("flights_to", {}).get(destination, ())
    for number in numbers:
        flight = world["flights"][number]
        if date not in flight["days"]:
            continue
        day = flight["days"][date]
        if day["status"] in ("scheduled", "delayed"):
            where = {key: flight[key] for key in ("origin", "destination", "departs", "arrives")}
            cabins = {kind: {c: day[kind][c] for c in CABINS} for kind in ("seats", "prices")}
            yield [{"flight": number, "date": date, **where, **cabins}]


def connections(world: Any, origin: str, destination: str, date: str) -> Iterator[list[Offer]]:
    """Journeys of two flights with time to change."""
    for stop in world["airports"].get(origin, {}).get("flights_to", ()):
        for (first,) in direct(world, origin, stop, date) if stop != destination else ():
            for (second,) in direct(world, stop, destination, date):
                if _minutes(second["departs"]) - _minutes(first["arrives"]) >= CHANGE_MINUTES:
                    yield [first, second]


def chosen(
    journeys: Sequence[list[Offer]], choice: str, cabin: str, passengers: int
) -> Iterator[list[Offer]]:
    """The cheapest or the earliest journeys with seats enough; several, if they are alike."""
    fitting = [j for j in journeys if all(leg["seats"][cabin] >= passengers for leg in j)]

    def rank(journey: list[Offer]) -> tuple[Any, ...]:
        if choice == "cheapest":
            return (sum(fare_of(leg, cabin) for leg in journey),)
        return (journey[0]["departs"],)

    best = min(map(rank, fitting), default=None)
    return (journey for journey in fitting if rank(journey) == best)


def fare_of(offer: Mapping[str, Any], cabin: str) -> int:
    """What a flight costs each passenger."""
    return int(offer["prices"][cabin])


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")
    return 60 * int(hours) + int(minutes)
