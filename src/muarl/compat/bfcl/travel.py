"""A travel agency: flights, credit cards, bookings, insurances."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, refused

_EXPIRES_IN = 2
_FACTORS = {"economy": 1, "business": 2, "first": 5}
_OF_AGE = 18
_DAYS_OF_A_YEAR = 365


class TravelAPI(Api):
    """What an authenticated traveller books and pays.

    In version 3 a wrong token costs one of the seconds that the right one is still valid.
    """

    MODULE = "travel_booking"
    LONG_CONTEXT = True

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state = super().begin(config, upstream, long=long)
        if long:
            state["credit_card_list"] |= upstream.long["CREDIT_CARD_EXTENSION"]
            state["booking_record"] |= upstream.long["BOOKING_RECORD_EXTENSION"]
        return state

    def _denied(self, access_token: Any) -> dict[str, Any] | None:
        """Why a token is not accepted."""
        if self.state["token_expires_in"] == 0:
            return refused("Token expired")
        if access_token != self.state["access_token"]:
            if self.version == "v3":
                self.state["token_expires_in"] -= 1
            return refused("Invalid access token")
        return None

    def _is_active(self) -> bool:
        return bool(self.state["token_expires_in"])

    @function()
    def authenticate_travel(
        self,
        client_id: Any,
        client_secret: Any,
        refresh_token: Any,
        grant_type: Any,
        user_first_name: Any,
        user_last_name: Any,
    ) -> Any:
        state = self.state
        state["token_expires_in"] = _EXPIRES_IN
        state["access_token"] = str(self.draw("randint", 100000, 999999))
        state["token_type"] = "Bearer"
        state["token_scope"] = grant_type
        state["user_first_name"] = user_first_name
        state["user_last_name"] = user_last_name
        return {
            "expires_in": _EXPIRES_IN,
            "access_token": state["access_token"],
            "token_type": "Bearer",
            "scope": grant_type,
        }

    @function()
    def travel_get_login_status(self) -> Any:
        return {"status": self._is_active()}

    @function()
    def get_budget_fiscal_year(
        self, lastModifiedAfter: Any = None, includeRemoved: Any = None
    ) -> Any:
        return {"budget_fiscal_year": "2018"}

    @function()
    def register_credit_card(
        self,
        access_token: Any,
        card_number: Any,
        expiration_date: Any,
        cardholder_name: Any,
        card_verification_number: Any,
    ) -> Any:
        if self.state["token_expires_in"] is None:
            return refused("Token not initialized")
        if denied := self._denied(access_token):
            return denied
        cards = self.state["credit_card_list"]
        if card_number in cards:
            return refused("Card already registered")
        card_id = str(self.draw("randint", 100000000000, 999999999999))
        cards[card_id] = {
            "card_number": card_number,
            "expiration_date": expiration_date,
            "cardholder_name": cardholder_name,
            "card_verification_number": card_verification_number,
            "balance": self.draw("randint", 10000, 99999),
        }
        return {"card_id": card_id}

    def _costs(
        self, travel_from: Any, travel_to: Any, travel_date: Any, travel_class: Any
    ) -> tuple[float, list[float]]:
        """What a flight costs, and what all flights would, on that day and in that class.

        Raises:
            ValueError: No such flight or class.
        """
        where = "TravelAPI.get_flight_cost"
        costs = dict(self.upstream.pairs(self.MODULE, where, "base_costs"))
        if (travel_from, travel_to) not in costs:
            raise ValueError("No available route for the given airports.")
        if travel_class not in _FACTORS:
            raise ValueError("Invalid travel class. Options are: economy, business, first.")
        factor = _FACTORS[travel_class]
        if sum(int(digit) for digit in travel_date if digit.isdigit()) % 2 == 0:
            factor *= 2
        own = float(costs[travel_from, travel_to] * factor)
        return own, [float(base * factor) for base in costs.values()]

    @function()
    def get_flight_cost(
        self, travel_from: Any, travel_to: Any, travel_date: Any, travel_class: Any
    ) -> Any:
        own, every = self._costs(travel_from, travel_to, travel_date, travel_class)
        return {"travel_cost_list": every if self.state["long_context"] else [own]}

    @function()
    def get_credit_card_balance(self, access_token: Any, card_id: Any) -> Any:
        if denied := self._denied(access_token):
            return denied
        cards = self.state["credit_card_list"]
        if card_id not in cards:
            return refused(f"Card not registered. Here are a list of card_id's: {list(cards)}")
        return {"card_balance": cards[card_id]["balance"]}

    @function()
    def book_flight(
        self,
        access_token: Any,
        card_id: Any,
        travel_date: Any,
        travel_from: Any,
        travel_to: Any,
        travel_class: Any,
    ) -> Any:
        if denied := self._denied(access_token):
            return {"booking_status": False, **denied}
        wrong, cost = self._may_not_book(card_id, travel_date, travel_from, travel_to, travel_class)
        if wrong:
            return {"booking_status": False, "error": wrong}
        self.state["credit_card_list"][card_id]["balance"] -= cost
        booking_id = str(self.draw("randint", 1000000, 9999999))
        transaction_id = str(self.draw("randint", 10000000, 99999999))
        self.state["booking_record"][booking_id] = {
            "card_id": card_id,
            "travel_date": travel_date,
            "travel_from": travel_from,
            "travel_to": travel_to,
            "travel_class": travel_class,
            "travel_cost": cost,
            "transaction_id": transaction_id,
        }
        return {
            "booking_id": booking_id,
            "transaction_id": transaction_id,
            "booking_status": True,
            "booking_history": self.state["booking_record"] if self.state["long_context"] else {},
        }

    def _may_not_book(
        self, card_id: Any, travel_date: Any, travel_from: Any, travel_to: Any, travel_class: Any
    ) -> tuple[str, float]:
        """Why a flight cannot be booked, or else "" and its cost."""
        cards = self.state["credit_card_list"]
        if card_id not in cards:
            return "Card not registered", 0
        if "balance" not in cards[card_id]:
            return "Balance not found", 0
        airports = self.upstream.table(self.MODULE, "TravelAPI.list_all_airports", "return")
        if travel_from not in airports:
            return f"Invalid departure airport code: {travel_from}", 0
        if travel_to not in airports:
            return f"Invalid destination airport code: {travel_to}", 0
        try:
            datetime.strptime(travel_date, "%Y-%m-%d")  # noqa: DTZ007
        except ValueError:
            return "Invalid date format. Use YYYY-MM-DD.", 0
        if travel_class not in _FACTORS:
            return f"Invalid travel class. Must be one of {set(_FACTORS)}", 0
        try:
            cost = self._costs(travel_from, travel_to, travel_date, travel_class)[0]
        except ValueError as error:
            return str(error), 0
        balance, limit = cards[card_id]["balance"], self.state["budget_limit"]
        if balance < cost:
            return "Insufficient funds", 0
        if limit is not None and balance < limit:
            return "Balance is less than budget limit", 0
        return "", cost

    @function("v4")
    def get_booking_history(self, access_token: Any) -> Any:
        if denied := self._denied(access_token):
            return denied
        return {"booking_history": self.state["booking_record"]}

    @function()
    def retrieve_invoice(
        self, access_token: Any, booking_id: Any = None, insurance_id: Any = None
    ) -> Any:
        if denied := self._denied(access_token):
            return denied
        if booking_id not in self.state["booking_record"]:
            return refused("Booking not found")
        booking = self.state["booking_record"][booking_id]
        shown = ("travel_date", "travel_from", "travel_to", "travel_class", "travel_cost")
        invoice = {"booking_id": booking_id, **{key: booking[key] for key in shown}}
        return {"invoice": {**invoice, "transaction_id": booking["transaction_id"]}}

    @function()
    def list_all_airports(self) -> Any:
        return self.upstream.table(self.MODULE, "TravelAPI.list_all_airports", "return")

    @function()
    def cancel_booking(self, access_token: Any, booking_id: Any) -> Any:
        if denied := self._denied(access_token):
            return {"cancel_status": False, **denied}
        bookings = self.state["booking_record"]
        if booking_id not in bookings:
            return {"cancel_status": False, "error": "Booking not found"}
        card_id, cost = bookings[booking_id]["card_id"], bookings[booking_id]["travel_cost"]
        self.state["credit_card_list"][card_id]["balance"] += cost
        del bookings[booking_id]
        return {"cancel_status": True}

    @function()
    def compute_exchange_rate(self, base_currency: Any, target_currency: Any, value: Any) -> Any:
        where = "TravelAPI.compute_exchange_rate"
        rates = dict(self.upstream.pairs(self.MODULE, where, "exchange_rates"))
        if (base_currency, target_currency) in rates:
            exchanged = value * rates[base_currency, target_currency]
        elif (target_currency, base_currency) in rates:
            exchanged = round(value / rates[target_currency, base_currency], 2)
        else:
            raise ValueError("No available exchange rate for the given currencies.")
        return {"exchanged_value": exchanged if self.version == "v3" else float(exchanged)}

    @function()
    def verify_traveler_information(
        self, first_name: Any, last_name: Any, date_of_birth: Any, passport_number: Any
    ) -> Any:
        known = self.state["user_first_name"], self.state["user_last_name"]
        if known != (first_name, last_name):
            names = f"Expected {known[0]} {known[1]}, got {first_name} {last_name}"
            return _unverified(f"Cannot book flight information for another user.{names}")
        try:
            born = datetime.strptime(date_of_birth, "%Y-%m-%d")  # noqa: DTZ007
        except ValueError:
            return _unverified("Invalid date of birth format. Please use YYYY-MM-DD.")
        today = datetime.today()  # noqa: DTZ002 - upstream asks the clock of its machine
        if today.year - born.year - ((today.month, today.day) < (born.month, born.day)) < _OF_AGE:
            return _unverified("Traveler must be at least 18 years old.")
        if not passport_number.startswith("US"):
            return _unverified("Passport must be issued by the United States.")
        return {"verification_status": True}

    @function()
    def set_budget_limit(self, access_token: Any, budget_limit: Any) -> Any:
        if denied := self._denied(access_token):
            return denied
        self.state["budget_limit"] = float(budget_limit)
        return {"budget_limit": self.state["budget_limit"]}

    @function()
    def get_nearest_airport_by_city(self, location: Any) -> Any:
        where = "TravelAPI.get_nearest_airport_by_city"
        airports = self.upstream.table(self.MODULE, where, "airport_map")
        return {"nearest_airport": airports.get(location, "Unknown")}

    @function()
    def purchase_insurance(
        self,
        access_token: Any,
        insurance_type: Any,
        booking_id: Any,
        insurance_cost: Any,
        card_id: Any,
    ) -> Any:
        if denied := self._denied(access_token):
            return {"insurance_status": False, **denied}
        limit = self.state["budget_limit"]
        if limit is not None and limit < insurance_cost:
            return {"insurance_status": False, "error": "Exceeded budget limit"}
        if booking_id not in self.state["booking_record"]:
            return {"insurance_status": False, "error": "Booking not found"}
        cards = self.state["credit_card_list"]
        if card_id not in cards:
            return {"insurance_status": False, "error": "Credit card not registered"}
        cards[card_id]["balance"] -= insurance_cost
        drawn = str(self.draw("randint", 100000000, 999999999))
        return {"insurance_id": drawn, "insurance_status": True}

    @function()
    def contact_customer_support(self, booking_id: Any, message: Any) -> Any:
        if booking_id not in self.state["booking_record"]:
            return refused("Booking not found")
        answer = self.upstream.table(self.MODULE, "TravelAPI.contact_customer_support", "return")
        return dict(answer)

    @function()
    def get_all_credit_cards(self) -> Any:
        return {"credit_card_list": self.state["credit_card_list"]}


def _unverified(why: str) -> dict[str, Any]:
    return {"verification_status": False, "verification_failure": why}
