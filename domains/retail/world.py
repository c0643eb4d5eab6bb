"""The shop's world: 500 customers, 1,000 orders, 50 products with some 500 variants."""

from __future__ import annotations

import random
from datetime import date, timedelta
from itertools import product
from typing import Any

from .goods import CITIES, FIRST_NAMES, LAST_NAMES, PRODUCTS, STREETS

TODAY = date(2026, 3, 16)
"""The day that the rules name."""
CUSTOMERS = 500
ORDERS = 1000
SPLITS = ("train", "held_out")
HELD_OUT = 4
"""Every so many-th customer and product is in no task to train on."""
MAIL = ("post.example", "letters.example", "inbox.example")
STATUSES = ("pending", "shipped", "delivered", "cancelled")
STATUS_SHARES = (0.44, 0.1, 0.43, 0.03)

Record = dict[str, Any]


def build() -> dict[str, dict[str, Record]]:
    """Always the same world."""
    rng = random.Random(1000)
    products = _products(rng)
    customers = {
        f"C{number}": _customer(rng) for number in rng.sample(range(10_000, 99_999), CUSTOMERS)
    }
    _tell_apart(customers)
    orders = _orders(rng, customers, products)
    return {"customers": customers, "orders": orders, "products": products}


def split_of(position: int) -> str:
    """The split whose tasks may be about the customer, or the product, at a position."""
    return "held_out" if position % HELD_OUT == 0 else "train"


def cents(amount: float) -> float:
    """An amount of money as it is written down."""
    return round(amount, 2)


def _products(rng: random.Random) -> dict[str, Record]:
    product_ids = iter(rng.sample(range(1_000, 9_999), len(PRODUCTS)))
    item_ids = iter(rng.sample(range(100_000, 999_999), 700))
    made = {}
    for name, (usual, first, firsts, second, seconds) in PRODUCTS.items():
        combinations = list(product(firsts, seconds))
        chosen = rng.sample(combinations, min(len(combinations), rng.randint(8, 12)))
        steps = rng.sample(range(-20, 31), len(chosen))  # no two variants cost the same
        variants = {
            f"V{next(item_ids)}": {
                "options": {first: one, second: other},
                "price": cents(usual * (1 + step / 100)),
                "stock": 0 if rng.random() < 0.2 else rng.randint(2, 30),
                "clearance": rng.random() < 0.1,
            }
            for (one, other), step in zip(chosen, steps, strict=True)
        }
        made[f"P{next(product_ids)}"] = {"name": name, "variants": variants}
    return made


def _customer(rng: random.Random) -> Record:
    payments: dict[str, Record] = {}
    for digits in rng.sample(range(1_000, 9_999), rng.choice((1, 1, 2))):
        card = {"kind": "card", "last_four": str(digits)}
        payments[f"card_{digits}{rng.randrange(100, 999)}"] = card
    if rng.random() < 0.6:
        balance = cents(rng.choice((15, 40, 120, 300)) + rng.randrange(100) / 100)
        payments[f"gift_{rng.randrange(100_000, 999_999)}"] = {
            "kind": "gift card",
            "balance": balance,
        }
    if rng.random() < 0.4:
        payments[f"wallet_{rng.randrange(100_000, 999_999)}"] = {"kind": "wallet"}
    return {
        "full_name": f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}",
        "email": "",
        "address": address(rng),
        "payments": payments,
        "orders": [],
    }


def address(rng: random.Random) -> dict[str, str]:
    """A place to deliver to."""
    return {
        "street": f"{rng.randint(2, 180)} {rng.choice(STREETS)}",
        "city": rng.choice(CITIES),
        "postcode": f"{rng.randrange(20_000, 99_999)}",
    }


def _tell_apart(customers: dict[str, Record]) -> None:
    """Give each an email of her own: names repeat."""
    for number, customer in enumerate(customers.values()):
        name = customer["full_name"].lower().replace(" ", ".")
        customer["email"] = f"{name}{number + 11}@{MAIL[number % len(MAIL)]}"


def _orders(
    rng: random.Random, customers: dict[str, Record], products: dict[str, Record]
) -> dict[str, Record]:
    """One order for half of the customers, three for the others, of products of their own split."""
    numbers = rng.sample(range(100_000, 999_999), ORDERS)
    owners = [*customers, *2 * rng.sample(list(customers), (ORDERS - CUSTOMERS) // 2)]
    splits = {key: split_of(at) for at, key in enumerate(customers)}
    offered = {
        split: [p for at, p in enumerate(products) if split_of(at) == split] for split in SPLITS
    }
    orders = {}
    for number, owner in zip(numbers, owners, strict=True):
        # No product is twice in an order, so that its name says which item is meant.
        wanted = rng.sample(offered[splits[owner]], rng.choice((2, 2, 3, 4)))
        items = {key: rng.choice(list(products[key]["variants"])) for key in wanted}
        lines = [_line(products, key, item) for key, item in items.items()]
        order_id = f"R{number}"
        orders[order_id] = _order(rng, owner, customers[owner], lines)
        customers[owner]["orders"].append(order_id)
    return orders


def _line(products: dict[str, Record], product_id: str, item_id: str) -> Record:
    variant = products[product_id]["variants"][item_id]
    return {
        "item_id": item_id,
        "product_id": product_id,
        "name": products[product_id]["name"],
        "options": dict(variant["options"]),
        "price": variant["price"],
        "clearance": variant["clearance"],
    }


def _order(rng: random.Random, owner: str, customer: Record, lines: list[Record]) -> Record:
    (status,) = rng.choices(STATUSES, STATUS_SHARES)
    placed = TODAY - timedelta(days=rng.randint(1, 6))
    delivered = None
    if status == "delivered":
        arrived = TODAY - timedelta(
            days=rng.choice((rng.randint(1, 28), rng.randint(1, 28), rng.randint(32, 90)))
        )
        placed, delivered = arrived - timedelta(days=rng.randint(2, 7)), arrived.isoformat()
    total = cents(sum(line["price"] for line in lines))
    payment_id = rng.choice(list(customer["payments"]))
    payments = [{"kind": "payment", "payment_id": payment_id, "amount": total}]
    if status == "cancelled":
        payments.append({"kind": "refund", "payment_id": payment_id, "amount": total})
    return {
        "customer_id": owner,
        "status": status,
        "placed_on": placed.isoformat(),
        "delivered_on": delivered,
        "address": dict(customer["address"]),
        "lines": lines,
        "payments": payments,
        "items_changed": status == "pending" and rng.random() < 0.15,
    }
