"""A customer of the shop for whom a task is made up, and what she has and wants."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from muarl.spec import GoldCallSpec

from . import books

Record = dict[str, Any]
PLACE = ("street", "city", "postcode")


@dataclass
class Goal:
    """One thing that a customer wants.

    Attributes:
        ask: The intent, as wordings know it.
        facts: What she tells of it, in the words that she tells it in.
        words: The same for people; `{order}` stands for the order.
        call: The call that does it; None if the rules forbid it, or nothing is to be done.
        said: What she must be told.
        order_id: The order that it is about.
        items: What of that order she names.
    """

    ask: str
    facts: dict[str, str]
    words: str
    call: GoldCallSpec | None = None
    said: str = ""
    order_id: str = ""
    items: tuple[str, ...] = field(default=())


class Shopper:
    """A customer, and what she can ask for in the world as it is by then.

    Attributes:
        rng: Draws what she wants.
        world: The world, changed by what she was given so far; its records are shared until then.
        customer_id: Who she is.
        used: Orders that she has spoken of.
    """

    def __init__(self, rng: random.Random, base: Record, customer_id: str) -> None:
        self.rng = rng
        self.world = {part: dict(records) for part, records in base.items()}
        self.customer_id = customer_id
        self.used: set[str] = set()

    @property
    def customer(self) -> Record:
        return self.world["customers"][self.customer_id]

    def grant(self, goal: Goal) -> None:
        """Do what she asks for, so that what she asks next is asked of the world after it."""
        if goal.call is None:
            return
        self._copy_records(goal.order_id)
        arguments = dict(goal.call.arguments)
        place = {part: arguments.pop(part) for part in PLACE if part in arguments}
        if goal.call.tool == "change_home_address":
            self.customer["address"] = place
        elif goal.call.tool == "change_delivery_address":
            books.redirect(self.world, arguments["order_id"], place)
        elif goal.call.tool in _DEEDS:
            _DEEDS[goal.call.tool](self.world, **arguments)

    def _copy_records(self, order_id: str) -> None:
        """Make what may change with an order hers alone."""
        touched = [("customers", self.customer_id)]
        if order_id:
            lines = self.world["orders"][order_id]["lines"]
            touched += [("orders", order_id), *(("products", line["product_id"]) for line in lines)]
        for part, key in touched:
            self.world[part][key] = deepcopy(self.world[part][key])

    # --- what is there to choose from -------------------------------------------------------------

    def orders(self, *statuses: str) -> Iterator[tuple[str, Record]]:
        """Her orders in these states that she has not spoken of, in any order."""
        mine = [key for key in self.customer["orders"] if key not in self.used]
        self.rng.shuffle(mine)
        for order_id in mine:
            order = self.world["orders"][order_id]
            if order["status"] in statuses:
                yield order_id, order

    def method(self, order: Record, *, other: bool = False) -> tuple[str, str]:
        """A payment method of hers and how she calls it; `other` than what an order was paid with."""
        original = order["payments"][0]["payment_id"]
        methods = self.customer["payments"]
        keys = [key for key in methods if not (other and key == original)]
        if not keys:
            return "", ""
        key = self.rng.choice(keys)
        if key == original and self.rng.random() < 0.5:
            return key, "original payment"
        return key, called(methods[key])


_DEEDS: dict[str, Callable[..., Any]] = {
    "cancel_order": books.cancel,
    "change_payment": books.pay_otherwise,
    "swap_items": books.swap,
    "return_items": books.take_back,
    "exchange_items": books.exchange,
}


def called(method: Mapping[str, Any]) -> str:
    """How customers call a payment method."""
    return f"card ending {method['last_four']}" if method["kind"] == "card" else method["kind"]


def in_words(place: Mapping[str, str]) -> str:
    """An address as customers write it."""
    return f"{place['street']}, {place['city']} {place['postcode']}"
