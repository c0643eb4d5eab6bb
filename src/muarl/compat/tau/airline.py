"""The airline: flights, reservations and users, of both generations.

Upstream tells the tools nothing about whose flights are whose: a segment keeps its price if the
reservation holds it in the same cabin, and nobody is ever unseated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from muarl.compat.tau.arithmetic import calculated
from muarl.compat.tau.toolkit import Refused, Tau1Toolkit, Tau2Toolkit, Toolkit, tool
from muarl.world import plain

_NOW = "2024-05-15T15:00:00"
_NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
_NEW_CERTIFICATES = tuple(f"certificate_{number}" for number in (3221322, 3221323, 3221324))
_INSURANCE, _BAGGAGE = 30, 50
"""Dollars: of a passenger, of a bag that is not free."""

_AIRPORTS = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}


class _Airline(Toolkit):
    """What both generations do alike."""

    def _say(self, text: str) -> str:
        raise NotImplementedError

    def _missing(self, what: str, name: Any) -> str:
        """That there is no such user or reservation."""
        raise NotImplementedError

    def _user(self, user_id: str) -> Any:
        if user_id not in self.db["users"]:
            raise Refused(self._missing("user", user_id))
        return self.db["users"][user_id]

    def _reservation(self, reservation_id: str) -> Any:
        if reservation_id not in self.db["reservations"]:
            raise Refused(self._missing("reservation", reservation_id))
        return self.db["reservations"][reservation_id]

    def _flight(self, number: str) -> Any:
        if number not in self.db["flights"]:
            raise Refused(self._say(f"flight {number} not found"))
        return self.db["flights"][number]

    def _on_date(self, number: str, date: str) -> Any:
        flight = self._flight(number)
        if date not in flight["dates"]:
            raise Refused(self._say(f"flight {number} not found on date {date}"))
        return flight["dates"][date]

    def _bookable(self, number: str, date: str, cabin: str, seats: int) -> Any:
        """A flight's day with so many seats left, or why there is none."""
        day = self._on_date(number, date)
        if day["status"] != "available":
            raise Refused(self._say(f"flight {number} not available on date {date}"))
        if day["available_seats"][cabin] < seats:
            raise Refused(self._say(f"not enough seats on flight {number}"))
        return day

    def _check_payments(self, user: Any, payments: Sequence[Any], price: Any) -> None:
        methods = user["payment_methods"]
        for payment in payments:
            payment_id = payment["payment_id"]
            if payment_id not in methods:
                raise Refused(self._say(f"payment method {payment_id} not found"))
            if _runs_out(methods[payment_id]) and methods[payment_id]["amount"] < payment["amount"]:
                raise Refused(self._say(f"not enough balance in payment method {payment_id}"))
        paid = sum(payment["amount"] for payment in payments)
        if paid != price:
            total = f"total price is {price}, but paid {paid}"
            raise Refused(self._say(f"payment amount does not add up, {total}"))

    def _pay(self, user: Any, payments: Sequence[Any]) -> None:
        """Take what was paid from gift cards; a certificate is used up, whatever it was worth."""
        methods = user["payment_methods"]
        for payment in payments:
            method = methods[payment["payment_id"]]
            if method["source"] == "gift_card":
                method["amount"] -= payment["amount"]
            elif method["source"] == "certificate":
                del methods[payment["payment_id"]]

    def _method_for_update(self, reservation: Any, payment_id: str, price: Any) -> Any:
        methods = self.db["users"][reservation["user_id"]]["payment_methods"]
        if payment_id not in methods:
            raise Refused(self._say("payment method not found"))
        method = methods[payment_id]
        if method["source"] == "certificate":
            raise Refused(self._say("certificate cannot be used to update reservation"))
        if method["source"] == "gift_card" and method["amount"] < price:
            raise Refused(self._say("gift card balance is not enough"))
        return method

    def _charge(self, reservation: Any, method: Any, payment_id: str, price: Any) -> None:
        if method["source"] == "gift_card":
            method["amount"] -= price
        if price != 0:
            payment = {"payment_id": payment_id, "amount": price}
            reservation["payment_history"].append(payment)

    @tool()
    def calculate(self, expression: str) -> str:
        return calculated(expression, self._say("invalid characters in expression"))

    @tool()
    def get_user_details(self, user_id: str) -> Any:
        return self._user(user_id)

    @tool()
    def get_reservation_details(self, reservation_id: str) -> Any:
        return self._reservation(reservation_id)

    @tool()
    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    @tool(writes=True)
    def cancel_reservation(self, reservation_id: str) -> Any:
        reservation = self._reservation(reservation_id)
        refunds = [
            {"payment_id": payment["payment_id"], "amount": -payment["amount"]}
            for payment in reservation["payment_history"]
        ]
        reservation["payment_history"].extend(refunds)
        reservation["status"] = "cancelled"
        return reservation

    @tool(writes=True)
    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Any:
        reservation = self._reservation(reservation_id)
        price = _BAGGAGE * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        method = self._method_for_update(reservation, payment_id, price)
        self._charge(reservation, method, payment_id, price)
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        return reservation

    def _segments(
        self, reservation: Any, cabin: str, flights: Sequence[Any]
    ) -> tuple[list[Any], Any]:
        """The new segments of a reservation, and what they cost beyond the old ones."""
        seats = len(reservation["passengers"])
        price: Any = 0
        segments = []
        for flight in flights:
            segment = next((s for s in reservation["flights"] if _same(s, flight)), None)
            if segment is None or cabin != reservation["cabin"]:
                segment = self._segment(flight, cabin, seats)
            segments.append(self._as_segment(flight, segment))
            price += segment["price"] * seats
        return segments, price - sum(s["price"] for s in reservation["flights"]) * seats

    def _segment(self, flight: Any, cabin: str, seats: int) -> dict[str, Any]:
        number, date = flight["flight_number"], flight["date"]
        day = self._bookable(number, date, cabin, seats)
        return {
            "flight_number": number,
            "origin": self._flight(number)["origin"],
            "destination": self._flight(number)["destination"],
            "date": date,
            "price": day["prices"][cabin],
        }

    def _as_segment(self, flight: Any, segment: Any) -> dict[str, Any]:
        """How a reservation holds it."""
        raise NotImplementedError

    def _direct(self, origin: Any, destination: Any, date: str) -> Iterator[tuple[Any, Any]]:
        """Flights that can be booked on a day, with that day; None is any place."""
        for flight in self.db["flights"].values():
            wanted = origin in (None, flight["origin"]) and destination in (
                None,
                flight["destination"],
            )
            if wanted and date in flight["dates"]:
                day = flight["dates"][date]
                if day["status"] == "available":
                    yield flight, day


class Tau1Airline(_Airline, Tau1Toolkit):
    """The airline of tau-bench."""

    def _say(self, text: str) -> str:
        return text

    def _missing(self, what: str, name: Any) -> str:
        return f"{what} not found"

    @tool()
    def think(self, thought: str) -> str:
        return ""

    @tool()
    def list_all_airports(self) -> Any:
        return _AIRPORTS

    @tool(writes=True)
    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: str,
        cabin: str,
        flights: list[Any],
        passengers: list[Any],
        payment_methods: list[Any],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: str,
    ) -> Any:
        user = self._user(user_id)
        taken = self.db["reservations"]
        free = [name for name in _NEW_RESERVATIONS if name not in taken]
        reservation_id = free[0] if free else _NEW_RESERVATIONS[-1]
        segments, price = [], 0
        for flight in flights:
            segment = self._segment(flight, cabin, len(passengers))
            segments.append(self._as_segment(flight, segment))
            price += segment["price"] * len(passengers)
        if insurance == "yes":
            price += _INSURANCE * len(passengers)
        price += _BAGGAGE * nonfree_baggages
        self._check_payments(user, payment_methods, price)
        self._pay(user, payment_methods)
        taken[reservation_id] = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": flight_type,
            "cabin": cabin,
            "flights": segments,
            "passengers": passengers,
            "payment_history": payment_methods,
            "created_at": _NOW,
            "total_baggages": total_baggages,
            "nonfree_baggages": nonfree_baggages,
            "insurance": insurance,
        }
        user["reservations"].append(reservation_id)
        return taken[reservation_id]

    def _as_segment(self, flight: Any, segment: Any) -> dict[str, Any]:
        prices = {key: segment[key] for key in ("price", "origin", "destination")}
        return {**plain(flight), **prices}

    @tool(writes=True)
    def update_reservation_flights(
        self, reservation_id: str, cabin: str, flights: list[Any], payment_id: str
    ) -> Any:
        reservation = self._reservation(reservation_id)
        segments, price = self._segments(reservation, cabin, flights)
        method = self._method_for_update(reservation, payment_id, price)
        self._charge(reservation, method, payment_id, price)
        reservation["flights"] = segments  # ... and the cabin stays what it was
        return reservation

    @tool(writes=True)
    def update_reservation_passengers(self, reservation_id: str, passengers: list[Any]) -> Any:
        reservation = self._reservation(reservation_id)
        if len(passengers) != len(reservation["passengers"]):
            raise Refused("number of passengers does not match")
        reservation["passengers"] = passengers
        return reservation

    @tool(writes=True)
    def send_certificate(self, user_id: str, amount: Any) -> Any:
        methods = self._user(user_id)["payment_methods"]
        for payment_id in _NEW_CERTIFICATES:
            if payment_id not in methods:
                methods[payment_id] = {
                    "source": "certificate",
                    "amount": amount,
                    "id": payment_id,
                }
                return f"Certificate {payment_id} added to user {user_id} with amount {amount}."
        return None

    @tool()
    def search_direct_flight(self, origin: str, destination: str, date: str) -> Any:
        found = self._direct(origin, destination, date)
        return [_tau1_flight(flight, day) for flight, day in found]

    @tool()
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> Any:
        found = []
        flights = self.db["flights"].values()
        for first in flights:
            if first["origin"] != origin:
                continue
            for second in flights:
                meets = first["destination"] == second["origin"]
                if not meets or second["destination"] != destination:
                    continue
                later = _next_day(first, date)
                if first["scheduled_arrival_time_est"] > second["scheduled_departure_time_est"]:
                    continue
                if date not in first["dates"] or later not in second["dates"]:
                    continue
                if not _both_available(first["dates"][date], second["dates"][later]):
                    continue
                # Seats and prices of the second leg are those of the first leg's day.
                legs = [_tau1_flight(leg, leg["dates"][date]) for leg in (first, second)]
                found.append([{**legs[0], "date": date}, {**legs[1], "date": later}])
        return found


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


class Tau2Airline(_Airline, Tau2Toolkit):
    """The airline of tau2-bench, whose models check what is booked."""

    def _say(self, text: str) -> str:
        return text[0].upper() + text[1:]

    def _missing(self, what: str, name: Any) -> str:
        return f"{what.capitalize()} {name} not found"

    @tool()
    def list_all_airports(self) -> Any:
        return [{"iata": code, "city": city} for code, city in _AIRPORTS.items()]

    @tool()
    def get_flight_status(self, flight_number: str, date: str) -> Any:
        return self._on_date(flight_number, date)["status"]

    @tool(writes=True)
    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: str,
        cabin: str,
        flights: list[Any],
        passengers: list[Any],
        payment_methods: list[Any],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: str,
    ) -> Any:
        infos = _checked(_FlightInfo, flights)
        people = _checked(_Passenger, passengers)
        payments = _checked(_Payment, payment_methods)
        user = self._user(user_id)
        taken = self.db["reservations"]
        reservation_id = next((n for n in _NEW_RESERVATIONS if n not in taken), None)
        if reservation_id is None:
            raise Refused("Too many reservations")
        booking = _Booking(
            user_id=user_id,
            origin=origin,
            destination=destination,
            flight_type=flight_type,
            cabin=cabin,
            passengers=people,
            payment_history=payments,
            total_baggages=total_baggages,
            nonfree_baggages=nonfree_baggages,
            insurance=insurance,
        ).model_dump()
        segments, price = [], 0
        for info in infos:
            segment = self._segment(_loose(info), cabin, len(people))
            segments.append(segment)
            price += segment["price"] * len(people)
        if insurance == "yes":
            price += _INSURANCE * len(people)
        price += _BAGGAGE * nonfree_baggages
        self._check_payments(user, booking["payment_history"], price)
        self._pay(user, booking["payment_history"])
        for segment in segments:
            day = self._on_date(segment["flight_number"], segment["date"])
            day["available_seats"][cabin] -= len(people)
        route = ("user_id", "origin", "destination", "flight_type", "cabin")
        taken[reservation_id] = {
            "reservation_id": reservation_id,
            **{key: booking[key] for key in route},
            "flights": segments,
            "passengers": booking["passengers"],
            "payment_history": booking["payment_history"],
            "created_at": _NOW,
            "total_baggages": booking["total_baggages"],
            "nonfree_baggages": booking["nonfree_baggages"],
            "insurance": booking["insurance"],
            "status": None,
        }
        user["reservations"].append(reservation_id)
        return taken[reservation_id]

    def _as_segment(self, flight: Any, segment: Any) -> dict[str, Any]:
        keys = ("flight_number", "origin", "destination", "date", "price")
        return {key: segment[key] for key in keys}

    @tool(writes=True)
    def update_reservation_flights(
        self, reservation_id: str, cabin: str, flights: list[Any], payment_id: str
    ) -> Any:
        infos = [_loose(info) for info in _checked(_FlightInfo, flights)]
        reservation = self._reservation(reservation_id)
        segments, price = self._segments(reservation, cabin, infos)
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
        reservation["passengers"] = [_loose(person) for person in people]
        return reservation

    @tool(writes=True)
    def send_certificate(self, user_id: str, amount: Any) -> Any:
        methods = self._user(user_id)["payment_methods"]
        payment_id = next((name for name in _NEW_CERTIFICATES if name not in methods), None)
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
            later = _next_day(first, date)
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


def _runs_out(method: Any) -> bool:
    return method["source"] in ("gift_card", "certificate")


def _same(segment: Any, flight: Any) -> bool:
    keys = ("flight_number", "date")
    return all(segment[key] == flight[key] for key in keys)


def _next_day(flight: Any, date: str) -> str:
    if "+1" not in flight["scheduled_arrival_time_est"]:
        return date
    return f"2024-05-{int(date[-2:]) + 1}"


def _both_available(first: Any, second: Any) -> bool:
    return bool(first["status"] == second["status"] == "available")


def _tau1_flight(flight: Any, day: Any) -> dict[str, Any]:
    return {**{key: flight[key] for key in flight if key != "dates"}, **day}


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
