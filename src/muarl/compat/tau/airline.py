"""The airline: flights, reservations and users, of both generations.

Upstream tells the tools nothing about whose flights are whose: a segment keeps its price if the
reservation holds it in the same cabin, and nobody is ever unseated.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from muarl.compat.tau.calculator import calculated
from muarl.compat.tau.toolkit import Refused, Toolkit, tool

NOW = "2024-05-15T15:00:00"
NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = tuple(f"certificate_{number}" for number in (3221322, 3221323, 3221324))
INSURANCE, BAGGAGE = 30, 50
"""Dollars: of a passenger, of a bag that is not free."""
_ROUTE = ("user_id", "origin", "destination", "flight_type", "cabin")
AIRPORTS = {
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


class AirlineTools(Toolkit):
    """What both generations do alike."""

    @abstractmethod
    def _say(self, text: str) -> str:
        """A refusal, as this generation words it."""

    @abstractmethod
    def _missing(self, what: str, name: Any) -> str:
        """That there is no such user or reservation."""

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
            reservation["payment_history"].append(self._payment(payment_id, price))

    def _payment(self, payment_id: str, amount: Any) -> dict[str, Any]:
        """A payment as its model holds it; tau-bench has none."""
        return {"payment_id": payment_id, "amount": amount}

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

    @abstractmethod
    def _new_reservation_id(self) -> str:
        """What the next reservation is called."""

    def _checked(self, flights: Any, passengers: Any, payments: Any) -> tuple[Any, Any, Any]:
        """What a reservation is made of, as its models hold it; tau-bench has none."""
        return flights, passengers, payments

    def _checked_booking(self, booking: dict[str, Any]) -> dict[str, Any]:
        """Likewise the reservation itself, before anything is looked up."""
        return booking

    def _booked(self, reservation: Any) -> None:
        """What else follows from a new reservation."""

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
        flights, passengers, payments = self._checked(flights, passengers, payment_methods)
        user = self._user(user_id)
        reservation_id = self._new_reservation_id()
        booking = self._checked_booking(
            {
                "user_id": user_id,
                "origin": origin,
                "destination": destination,
                "flight_type": flight_type,
                "cabin": cabin,
                "passengers": passengers,
                "payment_history": payments,
                "total_baggages": total_baggages,
                "nonfree_baggages": nonfree_baggages,
                "insurance": insurance,
            }
        )
        segments, price = [], 0
        for flight in flights:
            segment = self._segment(flight, cabin, len(passengers))
            segments.append(self._as_segment(flight, segment))
            price += segment["price"] * len(passengers)
        if insurance == "yes":
            price += INSURANCE * len(passengers)
        price += BAGGAGE * nonfree_baggages
        self._check_payments(user, booking["payment_history"], price)
        self._pay(user, booking["payment_history"])
        taken = self.db["reservations"]
        taken[reservation_id] = {
            "reservation_id": reservation_id,
            **{key: booking[key] for key in _ROUTE},
            "flights": segments,
            **{key: booking[key] for key in ("passengers", "payment_history")},
            "created_at": NOW,
            **{key: booking[key] for key in ("total_baggages", "nonfree_baggages", "insurance")},
        }
        self._booked(taken[reservation_id])
        user["reservations"].append(reservation_id)
        return taken[reservation_id]

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
        price = BAGGAGE * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        method = self._method_for_update(reservation, payment_id, price)
        self._charge(reservation, method, payment_id, price)
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        return reservation

    def _segments(
        self, reservation: Any, cabin: str, flights: Iterable[Any]
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

    @abstractmethod
    def _as_segment(self, flight: Any, segment: Any) -> dict[str, Any]:
        """How a reservation holds it."""

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


def _runs_out(method: Any) -> bool:
    return method["source"] in ("gift_card", "certificate")


def _same(segment: Any, flight: Any) -> bool:
    keys = ("flight_number", "date")
    return all(segment[key] == flight[key] for key in keys)


def day_after(flight: Any, date: str) -> str:
    """The date on which a flight that may arrive the next day does."""
    if "+1" not in flight["scheduled_arrival_time_est"]:
        return date
    return f"2024-05-{int(date[-2:]) + 1}"
