"""Customers and what they have with the carrier: plans, lines, bills, phones."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

TODAY = date(2026, 3, 2)
"""As the rules have it."""

PLANS: dict[str, dict[str, Any]] = {
    "P1": {"name": "Wren", "roaming": "no", "gb_price": 4.5, "most_at_a_time": "2 GB"},
    "P2": {"name": "Robin", "roaming": "no", "gb_price": 4, "most_at_a_time": "4 GB"},
    "P3": {"name": "Heron", "roaming": "yes", "gb_price": 3.5, "most_at_a_time": "5 GB"},
    "P4": {"name": "Falcon", "roaming": "yes", "gb_price": 3, "most_at_a_time": "8 GB"},
    "P5": {"name": "Condor", "roaming": "yes", "gb_price": 2.25, "most_at_a_time": "12 GB"},
}
PHONES = ("Orbit 5", "Orbit Mini", "Lumen 2", "Lumen Pro", "Kite", "Kite Max", "Tern 9", "Moss")
FIRST = (
    *("Ada", "Bela", "Cleo", "Dina", "Esma", "Fern", "Gina", "Hana", "Ines", "Jana", "Kira"),
    *("Lena", "Mona", "Nora", "Olga", "Pia", "Rosa", "Suri", "Tess", "Uma", "Vera", "Yara"),
)
LAST = (
    *("Adler", "Brandt", "Castro", "Dahl", "Ekberg", "Fischer", "Garcia", "Haas", "Ito"),
    *("Jansen", "Klein", "Lund", "Meyer", "Novak", "Ortega", "Petrov", "Quist", "Reyes"),
)


def most_gb(plan: str) -> int:
    """How many GB may be added at a time."""
    return int(PLANS[plan]["most_at_a_time"].split()[0])


def price(plan: str, gb: int) -> str:
    """What so many GB more cost."""
    return f"${gb * PLANS[plan]['gb_price']:.2f}"


def key(rng: random.Random, kind: str) -> str:
    """`C1234`, of a customer; L: of a line; B: of a bill."""
    return f"{kind}{rng.randrange(1000, 10_000)}"


def number(rng: random.Random) -> str:
    """Of a telephone."""
    return f"555{rng.randrange(1000, 10_000)}"


def person(rng: random.Random) -> dict[str, str]:
    """Somebody."""
    born = date(1950, 1, 1) + timedelta(days=rng.randrange(19_000))
    return {"name": f"{rng.choice(FIRST)} {rng.choice(LAST)}", "birth_date": born.isoformat()}


def line(rng: random.Random, customer: str, number: str, phone: str) -> dict[str, Any]:
    """A line that is as it should be."""
    return {
        "customer": customer,
        "number": number,
        "phone": phone,
        "plan": rng.choice(list(PLANS)),
        "status": "active",
        "roaming": rng.choice(("on", "off")),
        "gb_left": rng.randint(1, 30),
        "contract_until": day(rng, 60, 700),
        "note": "",
    }


def bill(rng: random.Random, customer: str, status: str = "paid", due: str = "") -> dict[str, Any]:
    """A bill, paid long ago if nothing else is said."""
    amount = f"${rng.randrange(40, 240) / 2:.2f}"
    due = due or day(rng, -300, -40)
    return {"customer": customer, "amount": amount, "due": due, "status": status}


def day(rng: random.Random, least: int, most: int) -> str:
    """A day so many days after today; before it, if negative."""
    return (TODAY + timedelta(days=rng.randint(least, most))).isoformat()
