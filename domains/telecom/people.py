"""Customers and what they have: names, numbers, lines and bills, disjoint between splits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

TODAY = date(2026, 3, 2)
"""As the rules have it."""

PLANS: dict[str, dict[str, Any]] = {
    "P1": {"name": "Wren", "roaming": "no", "gb_price": 4.5, "most_gb": 2},
    "P2": {"name": "Robin", "roaming": "no", "gb_price": 4, "most_gb": 4},
    "P3": {"name": "Heron", "roaming": "yes", "gb_price": 3.5, "most_gb": 5},
    "P4": {"name": "Falcon", "roaming": "yes", "gb_price": 3, "most_gb": 8},
    "P5": {"name": "Condor", "roaming": "yes", "gb_price": 2.25, "most_gb": 12},
}
PHONES = ("Orbit 5", "Orbit Mini", "Lumen 2", "Lumen Pro", "Kite", "Kite Max", "Tern 9", "Moss")
FIRST = (
    *("Ada", "Bela", "Cleo", "Dina", "Esma", "Fern", "Gina", "Hana", "Ines", "Jana", "Kira"),
    *("Lena", "Mona", "Nora", "Olga", "Pia", "Rosa", "Suri", "Tess", "Uma", "Vera", "Yara"),
)
LAST = {
    "train": ("Adler", "Brandt", "Castro", "Dahl", "Ekberg", "Fischer", "Garcia", "Haas", "Ito"),
    "held_out": ("Novak", "Ortega", "Petrov", "Quist"),
    "": ("Zeman", "Zhang"),
}
_RANGE = {"train": (1000, 7000), "held_out": (7000, 9000), "": (9000, 10_000)}
"""Of the numbers in ids and telephone numbers; "" is nobody's split."""


class Register:
    """Gives out ids and telephone numbers of a split, none of them twice."""

    def __init__(self, rng: random.Random, split: str) -> None:
        self.rng = rng
        self.split = split
        numbers = list(range(*_RANGE[split]))
        self._left = {kind: self._drawn(numbers) for kind in "CLB"}
        self._numbers = self._drawn(numbers)

    def _drawn(self, numbers: list[int]) -> Iterator[int]:
        return iter(self.rng.sample(numbers, len(numbers)))

    def id(self, kind: str) -> str:
        """`C1234`, of a customer; L: of a line; B: of a bill."""
        return f"{kind}{next(self._left[kind])}"

    def number(self) -> str:
        """Of a telephone."""
        return f"555{next(self._numbers)}"

    def customer(self) -> dict[str, Any]:
        """Somebody."""
        born = date(1950, 1, 1) + timedelta(days=self.rng.randrange(19_000))
        name = f"{self.rng.choice(FIRST)} {self.rng.choice(LAST[self.split])}"
        return {"name": name, "birth_date": born.isoformat()}

    def line(self, customer: str, phone: str, plan: str) -> dict[str, Any]:
        """A line that is as it should be."""
        return {
            "customer": customer,
            "number": self.number(),
            "phone": phone,
            "plan": plan,
            "status": "active",
            "roaming": self.rng.choice(("on", "off")),
            "gb_left": self.rng.randint(1, 30),
            "contract_until": later(self.rng, 60, 700),
            "note": "",
        }

    def bill(self, customer: str, status: str = "paid", due: str = "") -> dict[str, Any]:
        """A bill, paid long ago if nothing else is said."""
        amount = self.rng.randrange(40, 240) / 2
        due = due or later(self.rng, -300, -40)
        return {"customer": customer, "amount": amount, "due": due, "status": status}


def later(rng: random.Random, least: int, most: int) -> str:
    """A day so many days after today; before it, if negative."""
    return (TODAY + timedelta(days=rng.randint(least, most))).isoformat()
