"""Entities of the desk, disjoint between splits, and the words that values are made of."""

from __future__ import annotations

import random
from string import ascii_uppercase

ITEMS = ("lamp", "chair", "desk", "sofa", "rug", "vase", "clock", "shelf", "stool", "mirror")
CITIES = (
    "oslo",
    "rome",
    "lima",
    "cairo",
    "paris",
    "tokyo",
    "delhi",
    "quito",
    "sofia",
    "minsk",
    "kyoto",
    "osaka",
    "turin",
    "milan",
    "porto",
    "dakar",
    "accra",
    "lagos",
    "tunis",
    "rabat",
    "doha",
    "dubai",
    "hanoi",
    "perth",
)
STATUSES = ("pending", "shipped", "delivered")


SPLITS = ("dev", "held_out", *["train"] * 6)
"""Where an entity belongs, by a hash of its parts: one in eight is only in `dev`, on which settings
are tuned, and one in eight only in `held_out`, on which nothing is."""


def split_of(first: int, second: int) -> str:
    """The split whose entities this one is of."""
    return SPLITS[(first * 7 + second * 5) % len(SPLITS)]


def order_id(rng: random.Random, split: str) -> str:
    """A capital letter and a pair of digits; which go together depends on the split."""
    while True:
        letter, number = rng.randrange(26), rng.randrange(10, 100)
        if split_of(letter, number) == split:
            return f"{ascii_uppercase[letter]}{number}"


def account(rng: random.Random, split: str) -> str:
    """An account is named like an order, and the splits share none either."""
    return order_id(rng, split)


def stranger(rng: random.Random) -> str:
    """An account that no task's customer has."""
    return f"{rng.choice(ascii_uppercase)}0{rng.randrange(10)}"


def order(rng: random.Random, owner: str, status: str | None = None) -> dict[str, str]:
    """An order as the world keeps it."""
    return {
        "account": owner,
        "item": rng.choice(ITEMS),
        "status": status or rng.choice(STATUSES),
        "city": rng.choice(CITIES),
    }
