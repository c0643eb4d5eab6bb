"""The airline of tau-bench."""

from __future__ import annotations

from typing import Any

from muarl.compat.tau.airline import (
    AIRPORTS,
    NEW_CERTIFICATES,
    NEW_RESERVATIONS,
    AirlineTools,
    day_after,
)
from muarl.compat.tau.toolkit import Refused, Tau1Toolkit, tool
from muarl.world import plain


class Tau1Airline(AirlineTools, Tau1Toolkit):
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
        return AIRPORTS

    def _new_reservation_id(self) -> str:
        free = [name for name in NEW_RESERVATIONS if name not in self.db["reservations"]]
        return free[0] if free else NEW_RESERVATIONS[-1]

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
        for payment_id in NEW_CERTIFICATES:
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
                later = day_after(first, date)
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


def _both_available(first: Any, second: Any) -> bool:
    return bool(first["status"] == second["status"] == "available")


def _tau1_flight(flight: Any, day: Any) -> dict[str, Any]:
    return {**{key: flight[key] for key in flight if key != "dates"}, **day}
