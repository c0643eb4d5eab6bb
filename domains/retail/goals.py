"""What customers of the shop may want, each with the call that does it or the rule that forbids it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from muarl.spec import GoldCallSpec

from .shopper import Goal, Record, Shopper, in_words
from .world import TODAY, address

RETURN_DAYS = timedelta(days=30)
GOOD_REASONS = ("no longer needed", "ordered by mistake")
BAD_REASONS = ("cheaper elsewhere", "takes too long")

Maker = Callable[[Shopper, bool], Goal | None]


def _cancel(shopper: Shopper, refused: bool) -> Goal | None:
    badly = refused and shopper.rng.random() < 0.5
    statuses = ("shipped", "delivered") if refused and not badly else ("pending",)
    for order_id, _ in shopper.orders(*statuses):
        reason = shopper.rng.choice(BAD_REASONS if badly else GOOD_REASONS)
        return Goal(
            "cancel",
            {"order_id": order_id, "reason": reason},
            f"cancel {{order}}; your reason: {reason}",
            None if refused else _call("cancel_order", order_id=order_id, reason=reason),
            order_id=order_id,
        )
    return None


def _give_back(shopper: Shopper, refused: bool) -> Goal | None:
    rng = shopper.rng
    for order_id, order in shopper.orders(
        "delivered", *(("pending", "shipped") if refused else ())
    ):
        lines = rng.sample(order["lines"], min(len(order["lines"]), rng.choice((1, 1, 2))))
        original = order["payments"][0]["payment_id"]
        key, method = shopper.method(order)
        wrong_method = key != original and not key.startswith("gift")
        if refused != (wrong_method or not _returnable(order, lines)):
            continue
        items = tuple(line["name"] for line in lines)
        item = " and ".join(items)
        call = _call(
            "return_items",
            order_id=order_id,
            item_ids=[line["item_id"] for line in lines],
            refund_to=key,
        )
        return Goal(
            "give_back",
            {"order_id": order_id, "item": item, "refund_to": method},
            f"return the {item} of {{order}}, refunded to your {method}",
            None if refused else call,
            order_id=order_id,
            items=items,
        )
    return None


def _swap(shopper: Shopper, refused: bool) -> Goal | None:
    rng = shopper.rng
    statuses = ("pending", "delivered", *(("shipped",) if refused else ()))
    for order_id, order in shopper.orders(*statuses):
        both = len(order["lines"]) > 1 and rng.random() < 0.25
        lines = rng.sample(order["lines"], 2 if both else 1)
        want = "cheapest" if both else _want(rng, shopper, lines[0])
        new = [_wanted(shopper.world, line, want) for line in lines]
        key, method = shopper.method(order)
        why_not = order["status"] == "shipped" or None in new
        why_not |= order["status"] == "pending" and order["items_changed"]
        why_not |= order["status"] == "delivered" and not _returnable(order, lines)
        if not why_not:
            difference = sum(
                _variants(shopper.world, line)[new_id]["price"] - line["price"]
                for line, new_id in zip(lines, new, strict=True)
            )
            why_not = not _covers(shopper, key, difference)
        if refused != why_not:
            continue
        items = tuple(line["name"] for line in lines)
        item = " and ".join(items)
        call = _call(
            "exchange_items" if order["status"] == "delivered" else "swap_items",
            order_id=order_id,
            item_ids=[line["item_id"] for line in lines],
            new_item_ids=new,
            payment_id=key,
        )
        return Goal(
            "swap",
            {"order_id": order_id, "item": item, "want": want, "pay_with": method},
            f"swap the {item} of {{order}} for the {want} one, the difference on your {method}",
            None if refused else call,
            order_id=order_id,
            items=items,
        )
    return None


def _redirect(shopper: Shopper, refused: bool) -> Goal | None:
    boxed = refused and shopper.rng.random() < 0.5
    for order_id, _ in shopper.orders("shipped" if refused and not boxed else "pending"):
        place = address(shopper.rng)
        if boxed:
            place["street"] = f"PO Box {shopper.rng.randint(10, 990)}"
        call = _call("change_delivery_address", order_id=order_id, **place)
        return Goal(
            "redirect",
            {"order_id": order_id, "address": in_words(place)},
            f"have {{order}} delivered to {in_words(place)} instead",
            None if refused else call,
            order_id=order_id,
        )
    return None


def _redirect_home(shopper: Shopper, refused: bool) -> Goal | None:
    home = dict(shopper.customer["address"])
    for order_id, order in shopper.orders("shipped" if refused else "pending"):
        if order["address"] != home or refused:
            call = _call("change_delivery_address", order_id=order_id, **home)
            return Goal(
                "redirect_home",
                {"order_id": order_id},
                "have {order} delivered to your home address",
                None if refused else call,
                order_id=order_id,
            )
    return None


def _move(shopper: Shopper, refused: bool) -> Goal | None:
    place = address(shopper.rng)
    if refused:
        place["street"] = f"PO Box {shopper.rng.randint(10, 990)}"
    call = _call("change_home_address", customer_id=shopper.customer_id, **place)
    return Goal(
        "move",
        {"address": in_words(place)},
        f"have your home address changed to {in_words(place)}; orders stay as they are",
        None if refused else call,
    )


def _repay(shopper: Shopper, refused: bool) -> Goal | None:
    for order_id, order in (
        shopper.orders("shipped", "pending") if refused else shopper.orders("pending")
    ):
        key, method = shopper.method(order, other=True)
        if not key:
            continue
        owed = sum(line["price"] for line in order["lines"])
        if refused == (order["status"] == "pending" and _covers(shopper, key, owed)):
            continue
        return Goal(
            "repay",
            {"order_id": order_id, "pay_with": method},
            f"pay for {{order}} with your {method} instead",
            None if refused else _call("change_payment", order_id=order_id, payment_id=key),
            order_id=order_id,
        )
    return None


def _how_much_back(shopper: Shopper, refused: bool) -> Goal | None:
    for order_id, order in () if refused else shopper.orders("delivered"):
        if len(order["lines"]) > 1 and _returnable(order, order["lines"]):
            lines = shopper.rng.sample(order["lines"], 2)
            items = tuple(line["name"] for line in lines)
            item = " and ".join(items)
            return Goal(
                "how_much_back",
                {"order_id": order_id, "item": item},
                f"know how much you would get back for the {item} of {{order}}",
                said=f"{sum(line['price'] for line in lines):.2f}",
                order_id=order_id,
                items=items,
            )
    return None


def _cheapest(shopper: Shopper, refused: bool) -> Goal | None:
    product = _product(shopper)
    prices = [variant["price"] for variant in product["variants"].values() if variant["stock"]]
    return (
        None
        if refused or not prices
        else Goal(
            "cheapest",
            {"item": product["name"]},
            f"know what the cheapest {product['name']} in stock costs",
            said=f"{min(prices):.2f}",
        )
    )


def _how_many(shopper: Shopper, refused: bool) -> Goal | None:
    product = _product(shopper)
    count = sum(variant["stock"] > 0 for variant in product["variants"].values())
    return (
        None
        if refused
        else Goal(
            "how_many",
            {"item": product["name"]},
            f"know how many variants of the {product['name']} are in stock",
            said=str(count),
        )
    )


def _repair(shopper: Shopper, refused: bool) -> Goal | None:
    for order_id, order in () if refused else shopper.orders("delivered"):
        item = shopper.rng.choice(order["lines"])["name"]
        return Goal(
            "repair",
            {"order_id": order_id, "item": item},
            f"have the {item} of {{order}} repaired, for it broke",
            _call("transfer_to_human", summary=f"{item} of order {order_id} is to be repaired"),
            order_id=order_id,
            items=(item,),
        )
    return None


MAKERS: dict[str, Maker] = {
    "cancel": _cancel,
    "give_back": _give_back,
    "swap": _swap,
    "redirect": _redirect,
    "redirect_home": _redirect_home,
    "move": _move,
    "repay": _repay,
    "how_much_back": _how_much_back,
    "cheapest": _cheapest,
    "how_many": _how_many,
    "repair": _repair,
}


def ask_for(shopper: Shopper, kind: str, *, refused: bool) -> Goal | None:
    """Something of a kind that she can ask for, and gets or is refused; None if there is nothing."""
    made = MAKERS[kind](shopper, refused)
    if made is not None and made.order_id:
        shopper.used.add(made.order_id)
    return made


def _call(tool: str, **arguments: Any) -> GoldCallSpec:
    return GoldCallSpec(tool=tool, arguments=arguments)


def _returnable(order: Record, lines: list[Record]) -> bool:
    if order["status"] != "delivered" or any(line["clearance"] for line in lines):
        return False
    return TODAY - date.fromisoformat(order["delivered_on"]) <= RETURN_DAYS


def _covers(shopper: Shopper, payment_id: str, amount: float) -> bool:
    balance = shopper.customer["payments"][payment_id].get("balance")
    return balance is None or round(amount, 2) <= balance


def _product(shopper: Shopper) -> Record:
    products = shopper.world["products"]
    return products[shopper.rng.choice(list(products))]


def _variants(world: Record, line: Record) -> Record:
    return world["products"][line["product_id"]]["variants"]


def _want(rng: random.Random, shopper: Shopper, line: Record) -> str:
    """What she would rather have: "cheapest", "cheapest teal", or "teal"."""
    options = [variant["options"] for variant in _variants(shopper.world, line).values()]
    values = sorted({value for option in options for value in option.values()})
    kind = rng.choice(("cheapest", "cheapest of", "one", "one"))
    if kind == "cheapest":
        return kind
    value = rng.choice(values)
    return value if kind == "one" else f"cheapest {value}"


def _wanted(world: Record, line: Record, want: str) -> str | None:
    """The variant that is meant, if there is one in stock."""
    value = want.removeprefix("cheapest").strip()
    fitting = []
    for key, variant in _variants(world, line).items():
        changed = [o for o, v in variant["options"].items() if line["options"][o] != v]
        if want.startswith("cheapest"):
            fits = not value or value in variant["options"].values()
        else:
            fits = len(changed) == 1 and variant["options"][changed[0]] == value
        if fits and changed and variant["stock"]:
            fitting.append((variant["price"], key))
    return min(fitting)[1] if fitting else None
