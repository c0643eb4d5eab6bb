"""The airline's expert: serves travellers by the rules, with bad habits on request. It is not told the task."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from muarl.agent_script import Talk
from muarl.clerk import Clerk, Refused

from .offers import chosen, fare_of
from .reading import BORN, CODES, TRAVELLER, Wish, code_in, read
from .world import BAG_PRICE, INSURANCE_PRICE, NOW, Record, free_bags


class Expert(Clerk[Wish]):
    """Plays the airline for one dialogue."""

    _me: Record

    def read(self, heard: str) -> Wish | None:
        return read(heard)

    def identify(self) -> Talk[None]:
        number = TRAVELLER.search((yield from self.ask("What is your traveller number?")))
        born = BORN.search((yield from self.ask("And your date of birth?")))
        self._known = {
            "user_id": number[0] if number else "",
            "birth_date": born[0] if born else "",
        }
        self._trips: dict[str, Record] = {}

    def look(self) -> Talk[None]:
        self._me = yield from self.use("verify_traveller", **self._known)

    def forget(self, changed: Mapping[str, Any]) -> None:
        self._trips.pop(changed.get("reservation_id", ""), None)

    # --- what travellers want ---------------------------------------------------------------------

    def _book(self, wish: Wish) -> Talk[str]:
        airports = yield from self.use("list_airports")
        codes = {city: code for code, city in airports.items()}
        where = {
            "origin": codes[wish.cities[0]],
            "destination": codes[wish.cities[1]],
            "date": wish.date,
        }
        people = [{key: self._me[key] for key in ("name", "birth_date")}]
        people += [one for one in self._me["companions"] if one["name"] in wish.names]
        journeys = yield from self._direct(**where)
        if not journeys:
            journeys = (yield from self.use("search_connections", **where))["connections"]
        legs = next(chosen(journeys, wish.choice, wish.cabin, len(people)), None)
        if legs is None:
            raise Refused("there are no seats")
        free = free_bags(self._me["membership"], wish.cabin) * len(people)
        paid_bags = max(0, wish.count - free)
        insurance = "no insurance" not in wish.text
        fares = sum(fare_of(leg, wish.cabin) for leg in legs) + INSURANCE_PRICE * insurance
        owed = len(people) * fares + BAG_PRICE * paid_bags
        certificate = {}
        if wish.by_certificate:
            certificate["certificate_id"] = self._method("certificate")
        who = "one person" if len(people) == 1 else f"two people with {people[1]['name']}"
        paid = f"certificate and {wish.card}" if wish.by_certificate else wish.card
        summary = (
            f"Book the {wish.choice} flight from {wish.cities[0]} to {wish.cities[1]} on {wish.day} "
            f"in {wish.cabin} for {who}, with {wish.bags} and "
            f"{'insurance' if insurance else 'no insurance'}, {owed} euros paid with your {paid}"
        )
        return (
            yield from self.change(
                summary,
                "book_trip",
                user_id=self._known["user_id"],
                segments=[{"flight": leg["flight"], "date": leg["date"]} for leg in legs],
                cabin=wish.cabin,
                passengers=people,
                bags=wish.count,
                paid_bags=paid_bags,
                insurance=insurance,
                payment_id=self._method(wish.card),
                **certificate,
            )
        )

    def _cancel(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        self.forbid(_is_flown(trip), "it is flown")
        fresh = NOW - datetime.fromisoformat(trip["booked_at"]) <= timedelta(hours=24)
        allowed = fresh or trip["insurance"] or trip["cabin"] == "business" or _is_cancelled(trip)
        self.forbid(not allowed, "nothing in our rules allows it")
        summary = f"Cancel reservation {wish.reservation_id}{self._to(wish)}"
        return (
            yield from self.change(
                summary, "cancel_reservation", reservation_id=wish.reservation_id
            )
        )

    def _move(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        self.forbid(trip["cabin"] == "economy", "flights in economy stay as they are")
        self.forbid(_is_flown(trip), "it is flown")
        journeys = yield from self._direct(
            origin=trip["origin"], destination=trip["destination"], date=wish.date
        )
        best = next(chosen(journeys, wish.choice, trip["cabin"], len(trip["passengers"])), None)
        if best is None:
            raise Refused("there are no seats")
        summary = (
            f"Reservation {wish.reservation_id}{self._to(wish)} on the {wish.choice} flight on "
            f"{wish.day}, {best[0]['flight']}, the difference on the {wish.card}"
        )
        return (
            yield from self.change(
                summary,
                "change_flights",
                reservation_id=wish.reservation_id,
                segments=[{"flight": best[0]["flight"], "date": best[0]["date"]}],
                payment_id=self._method(wish.card),
            )
        )

    def _upgrade(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        owed = yield from self._fare(trip, wish.cabin)
        summary = (
            f"Reservation {wish.reservation_id}{self._to(wish)} in {wish.cabin}, a difference of "
            f"{owed} euros on the {wish.card}"
        )
        return (
            yield from self.change(
                summary,
                "change_cabin",
                reservation_id=wish.reservation_id,
                cabin=wish.cabin,
                payment_id=self._method(wish.card),
            )
        )

    def _ask_price(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        owed = yield from self._fare(trip, wish.cabin)
        return (yield from self.ask(f"That would be {owed} euros in all. Anything else?"))

    def _bags(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        self.forbid(_is_flown(trip), "it is flown")
        bags = trip["bags"] + wish.count
        free = free_bags(self._me["membership"], trip["cabin"]) * len(trip["passengers"])
        paid_bags = max(trip["paid_bags"], bags - free)
        owed = BAG_PRICE * (paid_bags - trip["paid_bags"])
        summary = (
            f"Reservation {wish.reservation_id}{self._to(wish)} with {wish.bags}, {owed} euros on "
            f"the {wish.card}"
        )
        return (
            yield from self.change(
                summary,
                "add_bags",
                reservation_id=wish.reservation_id,
                bags=bags,
                paid_bags=paid_bags,
                payment_id=self._method(wish.card),
            )
        )

    def _rename(self, wish: Wish) -> Talk[str]:
        yield from self._trip(wish)
        name, new_name = wish.names
        same = [old[:4] == new[:4] for old, new in zip(name.split(), new_name.split(), strict=True)]
        self.forbid(not any(same), "who flies cannot be changed")
        summary = f"{name} in reservation {wish.reservation_id}{self._to(wish)} becomes {new_name}"
        return (
            yield from self.change(
                summary,
                "correct_name",
                reservation_id=wish.reservation_id,
                name=name,
                new_name=new_name,
            )
        )

    def _complain(self, wish: Wish) -> Talk[str]:
        trip = yield from self._trip(wish)
        dear = trip["insurance"] or trip["cabin"] == "business"
        if self._me["membership"] == "basic" and not dear:
            raise Refused("that is for members, insured travellers and business")
        late = any(segment["status"] == "delayed" for segment in trip["segments"])
        if not (late or _is_cancelled(trip)):
            raise Refused("your flights are on time")
        amount = (100 if _is_cancelled(trip) else 50) * len(trip["passengers"])
        summary = (
            f"A certificate of {amount} euros for reservation {wish.reservation_id}{self._to(wish)}"
        )
        return (
            yield from self.change(
                summary, "issue_certificate", user_id=self._known["user_id"], amount=amount
            )
        )

    def _lost_bag(self, wish: Wish) -> Talk[str]:
        yield from self._trip(wish)
        summary = f"lost a bag on the trip booked as {wish.reservation_id}"
        yield from self.use("transfer_to_human", summary=summary)
        raise AssertionError("the conversation is over")

    # --- what is needed for it --------------------------------------------------------------------

    def _trip(self, wish: Wish) -> Talk[Record]:
        """The reservation that is meant, looked up; asked for, or found by where it goes."""
        if not (wish.reservation_id or wish.cities):
            wish.reservation_id = code_in((yield from self.ask("Which reservation is it?")))
        if wish.reservation_id:
            trip: Record = yield from self._look_up(wish.reservation_id)
            if trip["user_id"] != self._known["user_id"]:
                raise Refused("it is not your reservation")
            return trip
        for code in self._me["reservations"]:
            trip = yield from self._look_up(code)
            if wish.cities and trip["destination"] == CODES[wish.cities[0]]:
                wish.reservation_id = code
                return trip
        raise Refused("there is no such reservation")

    def _direct(self, **where: str) -> Talk[list[list[Record]]]:
        """Journeys of one flight."""
        found = yield from self.use("search_flights", **where)
        return [[offer] for offer in found["flights"]]

    def _look_up(self, code: str) -> Talk[Record]:
        """A reservation; each is looked up until it is changed."""
        if code not in self._trips:
            self._trips[code] = yield from self.use("get_reservation", reservation_id=code)
        return self._trips[code]

    def _fare(self, trip: Record, cabin: str) -> Talk[int]:
        """What it costs to have a reservation in another cabin."""
        self.forbid(_is_flown(trip), "it is flown")
        passengers = len(trip["passengers"])
        owed = 0
        for segment in trip["segments"]:
            offers = yield from self.use(
                "get_flight", flight=segment["flight"], date=segment["date"]
            )
            if offers["status"] == "cancelled" or offers["seats"][cabin] < passengers:
                raise Refused("there are no seats")
            owed += passengers * (offers["prices"][cabin] - segment["price"])
        return owed

    def _method(self, said: str) -> str:
        """The payment method that a traveller means."""
        for key, method in self._me["payments"].items():
            if said == method["kind"] or said.endswith(method.get("last_four", "none")):
                return str(key)
        raise Refused("you have no such payment method")

    def _to(self, wish: Wish) -> str:
        return f" to {wish.cities[0]}" if wish.cities else ""


def _is_flown(trip: Record) -> bool:
    return any(
        date.fromisoformat(segment["date"]) < NOW.date() or segment["status"] == "landed"
        for segment in trip["segments"]
    )


def _is_cancelled(trip: Record) -> bool:
    return any(segment["status"] == "cancelled" for segment in trip["segments"])
