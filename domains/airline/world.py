"""The airline's world: 500 travellers, 2,000 reservations, 300 flights on each of 14 days."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from itertools import permutations
from typing import Any

from .places import AIRPORTS_OF, FIRST_NAMES, LAST_NAMES

NOW = datetime(2026, 5, 15, 12, 0)  # noqa: DTZ001 - the rules' own clock
"""The moment that the rules name."""
DAYS = [NOW.date() + timedelta(days=offset) for offset in range(-4, 10)]
TRAVELLERS, RESERVATIONS = 500, 2000
ROUTES = {"train": 50, "held_out": 25}
"""Routes of each split; a quarter of travellers and routes belongs to held-out tasks."""
FLIGHTS_PER_ROUTE = 4
CABINS = ("economy", "comfort", "business")
FARES = {"economy": 1.0, "comfort": 1.7, "business": 3.1}
MEMBERSHIPS = ("basic", "silver", "gold")
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

Record = dict[str, Any]


def build() -> dict[str, Any]:
    """Always the same world."""
    rng = random.Random(2000)
    flights, routes = _flights(rng)
    travellers = {
        f"T{number}": _traveller(rng) for number in rng.sample(range(10_000, 99_999), TRAVELLERS)
    }
    reservations: dict[str, Record] = {}
    for position, (user_id, traveller) in enumerate(travellers.items()):
        mine = [r for r in routes if r[0] in AIRPORTS_OF[split_of(position)]]
        for _ in range(RESERVATIONS // TRAVELLERS):
            key = _code(rng, reservations)
            reservations[key] = _reservation(rng, user_id, traveller, flights, routes, mine)
            traveller["reservations"].append(key)
    return {
        "airports": {
            code: {
                "city": city,
                "flights_to": {to: routes[code, to] for to in cities if (code, to) in routes},
            }
            for split, cities in AIRPORTS_OF.items()
            for code, city in cities.items()
        },
        "flights": flights,
        "travellers": travellers,
        "reservations": reservations,
    }


def split_of(position: int) -> str:
    """The split whose tasks may be about the traveller at a position."""
    return "held_out" if position % 4 == 0 else "train"


def _flights(rng: random.Random) -> tuple[dict[str, Record], dict[tuple[str, str], list[str]]]:
    """Flights by number, and the numbers of those on a route."""
    routes: dict[tuple[str, str], list[str]] = {}
    flights = {}
    numbers = iter(rng.sample(range(100, 999), 300))
    for split, count in ROUTES.items():
        for route in rng.sample(list(permutations(AIRPORTS_OF[split], 2)), count):
            routes[route] = []
            minutes = rng.randint(55, 200)
            usual = 50 + minutes * rng.uniform(0.4, 0.9)
            for departs in sorted(rng.sample(range(6 * 60, 20 * 60, 25), FLIGHTS_PER_ROUTE)):
                number = f"SK{next(numbers)}"
                flights[number] = _flight(rng, route, departs, departs + minutes, usual)
                routes[route].append(number)
    return flights, routes


def _flight(
    rng: random.Random, route: tuple[str, str], departs: int, arrives: int, usual: float
) -> Record:
    return {
        "origin": route[0],
        "destination": route[1],
        "departs": clock(departs),
        "arrives": clock(arrives),
        "days": {day.isoformat(): _day(rng, day, arrives, usual) for day in DAYS},
    }


def clock(minutes: int) -> str:
    """Minutes since midnight as a time of day."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _day(rng: random.Random, day: date, arrives: int, usual: float) -> Record:
    flown = day < NOW.date() or (day == NOW.date() and arrives < 12 * 60)
    status = "landed" if flown else "scheduled"
    if rng.random() < 0.08:
        status = "cancelled"
    elif day == NOW.date() and not flown and rng.random() < 0.5:
        status = "delayed"
    base = usual * rng.uniform(0.7, 1.5)
    return {
        "status": status,
        "seats": {cabin: rng.choice((0, 1, 2, 4, 5, 7, 9, 12)) for cabin in CABINS},
        "prices": {cabin: round(base * fare) for cabin, fare in FARES.items()},
    }


def _traveller(rng: random.Random) -> Record:
    payments: dict[str, Record] = {}
    for digits in rng.sample(range(1_000, 9_999), rng.choice((1, 1, 2))):
        card = {"kind": "card", "last_four": str(digits)}
        payments[f"card_{digits}{rng.randrange(100, 999)}"] = card
    if rng.random() < 0.5:
        gift = {"kind": "gift card", "balance": rng.choice((60, 150, 400, 900))}
        payments[f"gift_{rng.randrange(100_000, 999_999)}"] = gift
    if rng.random() < 0.5:
        certificate = {"kind": "certificate", "balance": rng.choice((50, 100, 200))}
        payments[f"cert_{rng.randrange(100_000, 999_999)}"] = certificate
    family = rng.choice(LAST_NAMES)
    names = rng.sample(FIRST_NAMES, 4)
    me, *others = ({"name": f"{name} {family}", "birth_date": _birth_date(rng)} for name in names)
    return {
        **me,
        "membership": rng.choices(MEMBERSHIPS, (0.5, 0.3, 0.2))[0],
        "payments": payments,
        "companions": others[: rng.randint(1, 3)],
        "reservations": [],
    }


def _birth_date(rng: random.Random) -> str:
    return (date(1950, 1, 1) + timedelta(days=rng.randrange(20_000))).isoformat()


def _code(rng: random.Random, taken: dict[str, Record]) -> str:
    """A reservation's code: never one that reads like a number or a word of a sentence."""
    while True:
        code = "".join(rng.choices(LETTERS, k=6))
        if code not in taken and code[:2].isalpha() and any(map(str.isdecimal, code[2:])):
            return code


def _reservation(
    rng: random.Random,
    user_id: str,
    traveller: Record,
    flights: dict[str, Record],
    routes: dict[tuple[str, str], list[str]],
    mine: list[tuple[str, str]],
) -> Record:
    route = rng.choice(mine)
    cabin = rng.choices(CABINS, (0.45, 0.35, 0.2))[0]
    there = rng.choice(DAYS[:-3])
    legs = [(rng.choice(routes[route]), there)]
    back = routes.get((route[1], route[0]))
    if back and rng.random() < 0.6:
        legs.append((rng.choice(back), rng.choice(DAYS[DAYS.index(there) + 1 :])))
    companions = rng.sample(traveller["companions"], rng.choice((0, 0, 1)))
    me = {key: traveller[key] for key in ("name", "birth_date")}
    passengers = [dict(person) for person in (me, *companions)]
    segments = [
        {
            "flight": number,
            "date": day.isoformat(),
            "price": flights[number]["days"][day.isoformat()]["prices"][cabin] + rng.randint(-9, 9),
        }
        for number, day in legs
    ]
    insurance = rng.random() < 0.3
    bags = rng.randint(0, 2)
    paid_bags = max(0, bags - free_bags(traveller["membership"], cabin) * len(passengers))
    owed = price_of(segments, len(passengers), insurance=insurance, paid_bags=paid_bags)
    methods = [key for key in traveller["payments"] if not key.startswith("cert")]
    earliest = min(there, NOW.date()) - timedelta(days=rng.randint(3, 40))
    booked = datetime.combine(earliest, NOW.time()) + timedelta(minutes=rng.randint(-600, 600))
    if there > NOW.date() and rng.random() < 0.25:
        booked = NOW - timedelta(minutes=rng.randint(60, 22 * 60))
    return {
        "user_id": user_id,
        "status": "confirmed",
        "origin": route[0],
        "destination": route[1],
        "cabin": cabin,
        "segments": segments,
        "passengers": passengers,
        "bags": bags,
        "paid_bags": paid_bags,
        "insurance": insurance,
        "booked_at": booked.isoformat(timespec="minutes"),
        "payments": [{"payment_id": rng.choice(methods), "amount": owed}],
    }


def free_bags(membership: str, cabin: str) -> int:
    """Bags that each passenger takes along free."""
    return MEMBERSHIPS.index(membership) + CABINS.index(cabin)


BAG_PRICE = 40
INSURANCE_PRICE = 25


def price_of(segments: list[Record], passengers: int, *, insurance: bool, paid_bags: int) -> int:
    """What a reservation costs in all."""
    fares = passengers * sum(segment["price"] for segment in segments)
    return int(fares + INSURANCE_PRICE * passengers * insurance + BAG_PRICE * paid_bags)
