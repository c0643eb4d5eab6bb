"""Which written rules of the airline a call breaks, as far as the database can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DAY_AGO = "2024-05-14T15:00:00"
_TODAY = "2024-05-15"
_FREE = {"regular": 0, "silver": 1, "gold": 2}
_CABINS = ("basic_economy", "economy", "business")
_MOST = {"certificate": 1, "credit_card": 1, "gift_card": 3}
_PASSENGERS = 5
_PER_PASSENGER = {"cancelled": 100, "delayed": 50}


def broken_rules(
    db: Any, call: Mapping[str, Any], cabins: Mapping[str, str], *, generation: int
) -> Iterator[str]:
    """Rules that a call would break, by a short name.

    Args:
        db: The database before the call.
        call: `{name, arguments}`.
        cabins: Of reservations whose cabin was changed before, the new one: tau-bench does not write it.
        generation: 1 or 2, whose written rules differ in two places.
    """
    arguments = call["arguments"]
    reservation = db["reservations"].get(arguments.get("reservation_id"))
    if reservation is not None:
        reservation = {
            **reservation,
            "cabin": cabins.get(arguments["reservation_id"], reservation["cabin"]),
        }
    match call["name"]:
        case "book_reservation":
            yield from _booking(db, arguments, generation)
        case "cancel_reservation" if reservation is not None:
            yield from _cancelling(db, reservation)
        case "update_reservation_flights" if reservation is not None:
            yield from _changing(db, reservation, arguments, generation)
        case "update_reservation_baggages" if reservation is not None:
            yield from _bags(db, reservation, arguments, generation)
        case "send_certificate" if arguments.get("user_id") in db["users"]:
            yield from _compensating(db, arguments)


def _booking(db: Any, arguments: Any, generation: int) -> Iterator[str]:
    user = db["users"][arguments["user_id"]]
    passengers = len(arguments["passengers"])
    if passengers > _PASSENGERS:
        yield "more passengers than a reservation may have"
    used = [
        user["payment_methods"].get(payment["payment_id"], {}).get("source")
        for payment in arguments["payment_methods"]
    ]
    if any(used.count(source) > most for source, most in _MOST.items()):
        yield "more payment methods of a kind than a reservation may have"
    free = _free(user, arguments["cabin"], passengers, generation)
    if arguments["nonfree_baggages"] != max(0, arguments["total_baggages"] - free):
        yield "bags charged otherwise than the allowance says"


def _cancelling(db: Any, reservation: Any) -> Iterator[str]:
    if _flown(db, reservation):
        yield "a trip cancelled of which a part is flown"
    elif not (
        reservation["created_at"] >= _DAY_AGO
        or reservation["cabin"] == "business"
        or reservation["insurance"] == "yes"
        or "cancelled" in _states(db, reservation)
    ):
        yield "a reservation cancelled that nothing entitles to it"


def _changing(db: Any, reservation: Any, arguments: Any, generation: int) -> Iterator[str]:
    old, new = reservation["flights"], arguments["flights"]
    if [_leg(segment) for segment in old] != [_leg(segment) for segment in new]:
        if reservation["cabin"] == "basic_economy":
            yield "flights of a basic economy reservation changed"
        if not _same_trip(reservation, [db["flights"].get(s["flight_number"]) for s in new]):
            yield "origin or destination of a trip changed"
    elif generation == 2 and _flown(db, reservation):
        yield "the cabin changed of a trip of which a part is flown"


def _same_trip(reservation: Any, flights: list[Any]) -> bool:
    """Whether flights lead from a reservation's origin to its destination, and back if they did."""
    if not flights or not all(flights):
        return False
    ends = flights[0]["origin"], flights[-1]["destination"]
    there, back = reservation["origin"], reservation["destination"]
    if reservation["flight_type"] == "one_way":
        return ends == (there, back)
    return ends == (there, there) and back in {flight["destination"] for flight in flights}


def _bags(db: Any, reservation: Any, arguments: Any, generation: int) -> Iterator[str]:
    if arguments["total_baggages"] < reservation["total_baggages"]:
        yield "bags removed"
    user = db["users"][reservation["user_id"]]
    free = _free(user, reservation["cabin"], len(reservation["passengers"]), generation)
    if arguments["nonfree_baggages"] != max(0, arguments["total_baggages"] - free):
        yield "bags charged otherwise than the allowance says"


def _compensating(db: Any, arguments: Any) -> Iterator[str]:
    user = db["users"][arguments["user_id"]]
    due = {
        amount * len(reservation["passengers"])
        for name in user["reservations"]
        if (reservation := db["reservations"][name])
        and (
            user["membership"] != "regular"
            or reservation["insurance"] == "yes"
            or reservation["cabin"] == "business"
        )
        for state, amount in _PER_PASSENGER.items()
        if state in _states(db, reservation)
    }
    if arguments["amount"] not in due:
        yield "a certificate that no reservation of the user's is due"


def _free(user: Any, cabin: str, passengers: int, generation: int) -> int:
    free = _FREE[user["membership"]] + _CABINS.index(cabin)
    return passengers * (min(free, 3) if generation == 1 else free)


def _states(db: Any, reservation: Any) -> set[str]:
    return {_day(db, segment).get("status", "") for segment in reservation["flights"]}


def _flown(db: Any, reservation: Any) -> bool:
    return any(
        segment["date"] < _TODAY or _day(db, segment).get("status") in ("landed", "flying")
        for segment in reservation["flights"]
    )


def _day(db: Any, segment: Any) -> Any:
    flight = db["flights"].get(segment["flight_number"]) or {"dates": {}}
    return flight["dates"].get(segment["date"]) or {}


def _leg(segment: Any) -> tuple[str, str]:
    return segment["flight_number"], segment["date"]
