"""How the airline keeps its books: seats, fares and payments of a reservation.

All of it is checked before anything is written. A reservation's payments add up to what it costs; a gift
card loses what it pays; seats that are sold and seats that are free are always as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

from .world import BAG_PRICE, CABINS, INSURANCE_PRICE, NOW

Segment = Mapping[str, str]
"""Number and date of a flight."""


def find(world: Any, part: str, key: str) -> Any:
    """A record of the world.

    Raises:
        ToolError: There is none of this name.
    """
    if key not in world[part]:
        raise ToolError(f"no {part.removesuffix('s')} {key}")
    return world[part][key]


def confirmed(world: Any, reservation_id: str) -> Any:
    """A reservation that is not cancelled."""
    reservation = find(world, "reservations", reservation_id)
    if reservation["status"] != "confirmed":
        raise ToolError(f"reservation {reservation_id} is {reservation['status']}")
    return reservation


def book(
    world: Any,
    user_id: str,
    segments: Sequence[Segment],
    cabin: str,
    passengers: Sequence[Mapping[str, str]],
    bags: int,
    paid_bags: int,
    insurance: bool,
    payment_id: str,
    certificate_id: str,
) -> tuple[str, int]:
    """A new reservation; its code and what it costs."""
    traveller = find(world, "travellers", user_id)
    if not 1 <= len(passengers) <= 5:
        raise ToolError("a reservation is for one to five passengers")
    if not 0 <= paid_bags <= bags:
        raise ToolError("paid bags are some of the bags")
    route = _route(world, segments)
    taken = [_fare(world, segment, cabin, len(passengers)) for segment in segments]
    fares = len(passengers) * sum(segment["price"] for segment in taken)
    owed = fares + INSURANCE_PRICE * len(passengers) * insurance + BAG_PRICE * paid_bags
    payments = []
    if certificate_id:
        certificate = _method(traveller, certificate_id)
        if certificate["kind"] != "certificate":
            raise ToolError(f"{certificate_id} is no certificate")
        payments.append({"payment_id": certificate_id, "amount": min(owed, certificate["balance"])})
    rest = owed - sum(payment["amount"] for payment in payments)
    method = _money(traveller, payment_id)
    _must_cover(method, rest)
    for segment in taken:
        _seats(world, segment)[cabin] -= len(passengers)
    if certificate_id:
        del traveller["payments"][certificate_id]
    if rest:
        payments.append({"payment_id": payment_id, "amount": rest})
        _charge(method, rest)
    key = f"NEW{len(world['reservations']) + 1}"
    world["reservations"][key] = {
        "user_id": user_id,
        "status": "confirmed",
        "origin": route[0],
        "destination": route[1],
        "cabin": cabin,
        "segments": taken,
        "passengers": [dict(person) for person in passengers],
        "bags": bags,
        "paid_bags": paid_bags,
        "insurance": insurance,
        "booked_at": NOW.isoformat(timespec="minutes"),
        "payments": payments,
    }
    traveller["reservations"] = [*traveller["reservations"], key]
    return key, owed


def cancel(world: Any, reservation_id: str) -> int:
    """Cancel a reservation and refund what was not paid by certificate; how much that is."""
    reservation = confirmed(world, reservation_id)
    paid = {key: amount for key, amount in _paid(reservation).items() if _is_money(key)}
    for payment_id, amount in paid.items():
        _settle(world, reservation, payment_id, -amount)
    for segment in reservation["segments"]:
        _seats(world, segment)[reservation["cabin"]] += len(reservation["passengers"])
    reservation["status"] = "cancelled"
    return sum(paid.values())


def rebook(world: Any, reservation_id: str, segments: Sequence[Segment], payment_id: str) -> int:
    """Put a reservation on other flights of the same journey; the difference in fares."""
    reservation = confirmed(world, reservation_id)
    if _route(world, segments) != (reservation["origin"], _end(world, reservation["segments"])):
        raise ToolError("other flights must begin and end where the reservation does")
    return _move(world, reservation, segments, reservation["cabin"], payment_id)


def change_cabin(world: Any, reservation_id: str, cabin: str, payment_id: str) -> int:
    """Put a reservation into another cabin, on the same flights; the difference in fares."""
    reservation = confirmed(world, reservation_id)
    if reservation["cabin"] == cabin:
        raise ToolError(f"the reservation is in {cabin} already")
    return _move(world, reservation, reservation["segments"], cabin, payment_id)


def add_bags(world: Any, reservation_id: str, bags: int, paid_bags: int, payment_id: str) -> int:
    """Set how many bags travel, and how many of them are paid for; what that costs."""
    reservation = confirmed(world, reservation_id)
    if bags <= reservation["bags"] or not reservation["paid_bags"] <= paid_bags <= bags:
        raise ToolError("bags can only be added, and paid bags are some of the bags")
    owed = BAG_PRICE * (paid_bags - reservation["paid_bags"])
    _settle(world, reservation, payment_id, owed)
    reservation["bags"], reservation["paid_bags"] = bags, paid_bags
    return int(owed)


def rename(world: Any, reservation_id: str, name: str, new_name: str) -> None:
    """Correct the name of a passenger."""
    reservation = confirmed(world, reservation_id)
    for passenger in reservation["passengers"]:
        if passenger["name"] == name:
            passenger["name"] = new_name
            return
    raise ToolError(f"no passenger {name} in this reservation")


def give_certificate(world: Any, user_id: str, amount: int) -> str:
    """A certificate for later bookings."""
    traveller = find(world, "travellers", user_id)
    if amount <= 0:
        raise ToolError("a certificate is worth something")
    names = (f"cert_new{number}" for number in count(1))
    key = next(name for name in names if name not in traveller["payments"])
    traveller["payments"][key] = {"kind": "certificate", "balance": amount}
    return key


def _move(
    world: Any, reservation: Any, segments: Sequence[Segment], cabin: str, payment_id: str
) -> int:
    """Give a reservation these flights in this cabin; those that it has keep their fares."""
    passengers = len(reservation["passengers"])
    kept = {(s["flight"], s["date"]): s for s in reservation["segments"]}
    same_cabin = cabin == reservation["cabin"]
    taken = []
    for segment in segments:
        old = kept.get((segment["flight"], segment["date"])) if same_cabin else None
        taken.append(dict(old) if old else _fare(world, segment, cabin, passengers))
    before = sum(segment["price"] for segment in reservation["segments"])
    difference = passengers * (sum(segment["price"] for segment in taken) - before)
    _settle(world, reservation, payment_id, difference)
    for segment in reservation["segments"]:
        _seats(world, segment)[reservation["cabin"]] += passengers
    for segment in taken:
        _seats(world, segment)[cabin] -= passengers
    reservation["segments"], reservation["cabin"] = taken, cabin
    return int(difference)


def _route(world: Any, segments: Sequence[Segment]) -> tuple[str, str]:
    """Where flights begin and end, one going on where the other ends."""
    if not segments:
        raise ToolError("give at least one flight")
    flights = [find(world, "flights", segment["flight"]) for segment in segments]
    for one, next_one in pairwise(flights):
        if one["destination"] != next_one["origin"]:
            raise ToolError("each flight must leave from where the one before arrives")
    return flights[0]["origin"], flights[-1]["destination"]


def _end(world: Any, segments: Sequence[Segment]) -> str:
    return str(world["flights"][segments[-1]["flight"]]["destination"])


def _fare(world: Any, segment: Segment, cabin: str, passengers: int) -> dict[str, Any]:
    """A flight for so many passengers, as a reservation holds it.

    Raises:
        ToolError: It cannot be had.
    """
    number, day = segment["flight"], segment["date"]
    days = find(world, "flights", number)["days"]
    if cabin not in CABINS:
        raise ToolError(f"no cabin {cabin}; there are {', '.join(CABINS)}")
    if day not in days or days[day]["status"] not in ("scheduled", "delayed"):
        raise ToolError(f"{number} cannot be booked on {day}")
    if days[day]["seats"][cabin] < passengers:
        raise ToolError(f"{number} on {day} has {days[day]['seats'][cabin]} seats left in {cabin}")
    return {"flight": number, "date": day, "price": days[day]["prices"][cabin]}


def _seats(world: Any, segment: Mapping[str, Any]) -> Any:
    return world["flights"][segment["flight"]]["days"][segment["date"]]["seats"]


def _is_money(payment_id: str) -> bool:
    return not payment_id.startswith("cert")


def _method(traveller: Any, payment_id: str) -> Any:
    if payment_id not in traveller["payments"]:
        raise ToolError(f"the traveller has no payment method {payment_id}")
    return traveller["payments"][payment_id]


def _money(traveller: Any, payment_id: str) -> Any:
    method = _method(traveller, payment_id)
    if not _is_money(payment_id):
        raise ToolError("only new bookings can be paid with a certificate, beside a card")
    return method


def _must_cover(method: Any, amount: int) -> None:
    if amount > method.get("balance", amount):
        raise ToolError(f"the gift card holds {method['balance']}, not {amount}")


def _charge(method: Any, amount: int) -> None:
    if "balance" in method:
        method["balance"] -= amount


def _settle(world: Any, reservation: Any, payment_id: str, amount: int) -> None:
    """Charge a payment method with an amount, or refund it if the amount is negative."""
    method = _money(world["travellers"][reservation["user_id"]], payment_id)
    _must_cover(method, amount)
    if amount:
        _charge(method, amount)
        entry = {"payment_id": payment_id, "amount": amount}
        reservation["payments"] = [*map(dict, reservation["payments"]), entry]


def _paid(reservation: Any) -> dict[str, int]:
    """What each payment method has paid so far, where it is anything."""
    paid: dict[str, int] = {}
    for entry in reservation["payments"]:
        paid[entry["payment_id"]] = paid.get(entry["payment_id"], 0) + entry["amount"]
    return {key: amount for key, amount in paid.items() if amount}
