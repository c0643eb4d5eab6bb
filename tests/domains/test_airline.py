"""The airline: always the same, honest with money and seats."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from business_kit import AIRLINE
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.world import World, plain

SPLITS = ("train", "held_out")


def test_it_has_the_size_that_it_is_said_to_have() -> None:
    base = AIRLINE.domain.base
    assert {part: len(base[part]) for part in base} == {
        "airports": 20,
        "flights": 300,
        "travellers": 500,
        "reservations": 2000,
    }
    assert {len(flight["days"]) for flight in base["flights"].values()} == {14}


def test_splits_share_no_traveller_no_reservation_and_no_flight_L10() -> None:
    found: dict[str, set[str]] = {}
    for split in SPLITS:
        named = [call.arguments for task in AIRLINE.domain.tasks(split) for call in task.gold]
        found[split] = {
            args[key] for args in named for key in ("user_id", "reservation_id") if key in args
        }
        found[split] |= {s["flight"] for args in named for s in args.get("segments", ())}
    assert min(map(len, found.values())) > 30
    assert found["train"].isdisjoint(found["held_out"])


def test_the_axes_are_all_there() -> None:
    """Writes, refusals, things to be told, reservations and flights to be found."""
    writes = Counter(
        sum(c.tool in AIRLINE.domain.spec.writes for c in t.gold) for t in AIRLINE.tasks
    )
    assert all(writes[count] >= 3 for count in (0, 1, 2)), writes
    wishes = Counter(len(task.user.requests) for task in AIRLINE.tasks if task.user is not None)
    assert set(wishes) == {1, 2, 3}
    rewards = [predicate for task in AIRLINE.tasks for predicate in task.reward or ()]
    assert sum(bool(predicate.called) for predicate in rewards) > 10, "refusals"
    unknown = [task for task in AIRLINE.tasks if "whose code you do not know" in task.goal]
    assert len(unknown) > 10
    used = {call.tool for task in AIRLINE.tasks for call in task.gold}
    assert {*AIRLINE.domain.spec.writes, *AIRLINE.domain.spec.terminal} <= used


# --- money and seats ------------------------------------------------------------------------------

SOME = list(AIRLINE.domain.base["travellers"])[:12]


def any_call(world: World, rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A call of a write that might work, for one of some travellers."""
    user_id = rng.choice(SOME)
    traveller = world["travellers"][user_id]
    methods = list(traveller["payments"])
    key = rng.choice(list(traveller["reservations"]))
    made = plain(world["reservations"][key])
    route = rng.choice(made["segments"])["flight"]
    days = list(world["flights"][route]["days"])
    segments = [{"flight": route, "date": rng.choice(days[4:])}]
    cabin = rng.choice(("economy", "comfort", "business"))
    method, bags = rng.choice(methods), made["bags"] + rng.randint(0, 3)
    me = {part: traveller[part] for part in ("name", "birth_date")}
    certificates = ["", *(m for m in methods if m.startswith("cert"))]
    return rng.choice(
        [
            ("cancel_reservation", {"reservation_id": key}),
            ("change_cabin", {"reservation_id": key, "cabin": cabin, "payment_id": method}),
            ("change_flights", {"reservation_id": key, "segments": segments, "payment_id": method}),
            (
                "add_bags",
                {
                    "reservation_id": key,
                    "bags": bags,
                    "paid_bags": rng.randint(0, bags),
                    "payment_id": method,
                },
            ),
            (
                "book_trip",
                {
                    "user_id": user_id,
                    "segments": segments,
                    "cabin": cabin,
                    "passengers": [me],
                    "bags": 1,
                    "paid_bags": 1,
                    "insurance": rng.random() < 0.5,
                    "payment_id": method,
                    "certificate_id": rng.choice(certificates),
                },
            ),
            ("issue_certificate", {"user_id": user_id, "amount": 50}),
        ]
    )


def seats(world: Mapping[str, Any]) -> Counter[tuple[str, str, str]]:
    """Seats on each flight, day and cabin: those that are free, and those that are sold."""
    found: Counter[tuple[str, str, str]] = Counter()
    for number, flight in world["flights"].items():
        for day, record in flight["days"].items():
            for cabin, free in record["seats"].items():
                assert free >= 0
                found[number, day, cabin] += free
    for made in world["reservations"].values():
        for segment in made["segments"] if made["status"] == "confirmed" else ():
            found[segment["flight"], segment["date"], made["cabin"]] += len(made["passengers"])
    return found


def gifts(world: Mapping[str, Any]) -> int:
    """What is on the gift cards of these travellers."""
    methods = [m for key in SOME for m in world["travellers"][key]["payments"].values()]
    assert all(method.get("balance", 0) >= 0 for method in methods)
    return sum(m["balance"] for m in methods if m["kind"] == "gift card")


def by_gift_card(world: Mapping[str, Any]) -> int:
    """What gift cards paid for all reservations of these travellers, refunds taken off."""
    codes = [code for key in SOME for code in world["travellers"][key]["reservations"]]
    paid = [entry for code in codes for entry in world["reservations"][code]["payments"]]
    return sum(entry["amount"] for entry in paid if entry["payment_id"].startswith("gift"))


def owed(made: Mapping[str, Any]) -> int:
    """What a reservation costs."""
    fares = sum(segment["price"] for segment in made["segments"])
    return int(len(made["passengers"]) * (fares + 25 * made["insurance"]) + 40 * made["paid_bags"])


@settings(max_examples=5)
@given(st.integers(0, 10**9))
def test_no_money_comes_or_goes_and_no_seat_is_sold_twice(seed: int) -> None:
    rng = random.Random(seed)
    world = AIRLINE.domain.base.fork()
    before = plain(world)
    for _ in range(15):
        tool, arguments = any_call(world, rng)
        was = plain(world) if rng.random() < 0.1 else None
        result = AIRLINE.call(world, tool, arguments)
        if result.is_error and was is not None:
            assert world == was, "a call that is refused changes nothing"
    after = plain(world)
    assert seats(after) == seats(before), "seats sold and seats free are as many as before"
    assert gifts(after) + by_gift_card(after) == gifts(before) + by_gift_card(before)
    for key in SOME:
        for code in after["travellers"][key]["reservations"]:
            made = after["reservations"][code]
            paid = sum(entry["amount"] for entry in made["payments"])
            lost = [e["amount"] for e in made["payments"] if e["payment_id"].startswith("cert")]
            assert paid == (owed(made) if made["status"] == "confirmed" else sum(lost))
