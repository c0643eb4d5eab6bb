"""The airline of tau2-bench, whose models check what is booked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from muarl.compat.tau.airline import (
    AIRPORTS,
    NEW_CERTIFICATES,
    NEW_RESERVATIONS,
    AirlineTools,
    day_after,
)
from muarl.compat.tau.toolkit import Refused, Tau2Toolkit, tool
from muarl.world import plain


class _FlightInfo(BaseModel):
    flight_number: str
    date: str


class _Passenger(BaseModel):
    first_name: str
    last_name: str
    dob: str


class _Payment(BaseModel):
    payment_id: str
    amount: int


class _Booking(BaseModel):
    """The fields of a reservation that its model checks before anything is looked up."""

    user_id: str
    origin: str
    destination: str
    flight_type: Literal["round_trip", "one_way"]
    cabin: Literal["business", "economy", "basic_economy"]
    passengers: list[_Passenger]
    payment_history: list[_Payment]
    total_baggages: int
    nonfree_baggages: int
    insurance: Literal["yes", "no"]


class _Certificate(BaseModel):
    id: str
    amount: float


class Tau2Airline(AirlineTools, Tau2Toolkit):
    """The airline of tau2-bench, whose models check what is booked."""

    def _say(self, text: str) -> str:
        return text[0].upper() + text[1:]

    def _missing(self, what: str, name: Any) -> str:
        return f"{what.capitalize()} {name} not found"

    @tool()
    def list_all_airports(self) -> Any:
        return [{"iata": code, "city": city} for code, city in AIRPORTS.items()]

    @tool()
    def get_flight_status(self, flight_number: str, date: str) -> Any:
        return self._on_date(flight_number, date)["status"]

    def _new_reservation_id(self) -> str:
        for name in NEW_RESERVATIONS:
            if name not in self.db["reservations"]:
                return name
        raise Refused("Too many reservations")

    def _checked(self, flights: Any, passengers: Any, payments: Any) -> tuple[Any, Any, Any]:
        infos = _checked(_FlightInfo, flights)
        people = _checked(_Passenger, passengers)
        return map(_loose, infos), people, _checked(_Payment, payments)

    def _checked_booking(self, booking: dict[str, Any]) -> dict[str, Any]:
        return _Booking(**booking).model_dump()

    def _booked(self, reservation: Any) -> None:
        reservation["status"] = None
        for segment in reservation["flights"]:
            day = self._on_date(segment["flight_number"], segment["date"])
            day["available_seats"][reservation["cabin"]] -= len(reservation["passengers"])

    def _payment(self, payment_id: str, amount: Any) -> dict[str, Any]:
        return _Payment(payment_id=payment_id, amount=amount).model_dump()

    def _as_segment(self, flight: Any, segment: Any) -> dict[str, Any]:
        keys = ("flight_number", "origin", "destination", "date", "price")
        return {key: segment[key] for key in keys}

    @tool(writes=True)
    def update_reservation_flights(
        self, reservation_id: str, cabin: str, flights: list[Any], payment_id: str
    ) -> Any:
        infos = _checked(_FlightInfo, flights)
        reservation = self._reservation(reservation_id)
        segments, price = self._segments(reservation, cabin, map(_loose, infos))
        method = self._method_for_update(reservation, payment_id, price)
        self._charge(reservation, method, payment_id, price)
        reservation["flights"] = segments
        reservation["cabin"] = cabin
        return reservation

    @tool(writes=True)
    def update_reservation_passengers(self, reservation_id: str, passengers: list[Any]) -> Any:
        people = _checked(_Passenger, passengers)
        reservation = self._reservation(reservation_id)
        if len(people) != len(reservation["passengers"]):
            raise Refused("Number of passengers does not match")
        # What was not checked is written as it came: a text, too.
        models = people and all(isinstance(person, BaseModel) for person in people)
        reservation["passengers"] = [_loose(p) for p in people] if models else plain(passengers)
        return reservation

    @tool(writes=True)
    def send_certificate(self, user_id: str, amount: Any) -> Any:
        methods = self._user(user_id)["payment_methods"]
        payment_id = next((name for name in NEW_CERTIFICATES if name not in methods), None)
        if payment_id is None:
            raise Refused("Too many certificates")
        made = _Certificate(id=payment_id, amount=amount)
        methods[payment_id] = {
            "source": "certificate",
            "id": payment_id,
            "amount": made.amount,
        }
        return f"Certificate {payment_id} added to user {user_id} with amount {amount}."

    @tool()
    def search_direct_flight(self, origin: str, destination: str, date: str) -> Any:
        found = self._direct(origin, destination, date)
        return [_tau2_flight(flight, day, None) for flight, day in found]

    @tool()
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> Any:
        found = []
        for first, day in self._direct(origin, None, date):
            later = day_after(first, date)
            for second, next_day in self._direct(first["destination"], destination, later):
                if second["scheduled_departure_time_est"] < first["scheduled_arrival_time_est"]:
                    continue
                legs = [_tau2_flight(first, day, date), _tau2_flight(second, next_day, later)]
                found.append(legs)
        return found


def tau2_database(db: Any) -> dict[str, Any]:
    """The database as tau2's models hold it: all fields, in their order.

    Args:
        db: The published `db.json`.
    """
    reservations = {key: {**value, "status": None} for key, value in db["reservations"].items()}
    for reservation in reservations.values():
        reservation["flights"] = [
            {key: s[key] for key in ("flight_number", "origin", "destination", "date", "price")}
            for s in reservation["flights"]
        ]
    return {"flights": db["flights"], "users": db["users"], "reservations": reservations}


def _checked(model: type[BaseModel], items: Sequence[Any]) -> list[Any]:
    """Each as its model holds it; upstream checks only where all are objects."""
    plain_items = plain(items)
    if all(isinstance(item, dict) for item in plain_items):
        return [model(**item) for item in plain_items]
    return list(plain_items)


def _loose(item: Any) -> Any:
    """What was checked, as JSON; what was not has no attributes either."""
    return item.model_dump()


def _tau2_flight(flight: Any, day: Any, date: str | None) -> dict[str, Any]:
    return {
        **{key: flight[key] for key in ("flight_number", "origin", "destination")},
        "status": "available",
        "scheduled_departure_time_est": flight["scheduled_departure_time_est"],
        "scheduled_arrival_time_est": flight["scheduled_arrival_time_est"],
        "date": date,
        "available_seats": day["available_seats"],
        "prices": day["prices"],
    }
