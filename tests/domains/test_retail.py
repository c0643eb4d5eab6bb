"""The shop: always the same, honest with money and stock."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from business_kit import RETAIL
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.world import plain

SPLITS = ("train", "held_out")


def test_it_has_the_size_that_it_is_said_to_have() -> None:
    base = RETAIL.domain.base
    assert {part: len(base[part]) for part in base} == {
        "customers": 500,
        "orders": 1000,
        "products": 50,
    }


def test_splits_share_no_customer_no_order_and_no_product_L10() -> None:
    owner = {
        order_id: customer_id
        for customer_id, customer in RETAIL.domain.base["customers"].items()
        for order_id in customer["orders"]
    }
    found: dict[str, set[str]] = {}
    for split in SPLITS:
        named = [call.arguments for task in RETAIL.domain.tasks(split) for call in task.gold]
        orders = {given["order_id"] for given in named if "order_id" in given}
        lines = [line for key in orders for line in RETAIL.domain.base["orders"][key]["lines"]]
        asked = {given["product_id"] for given in named if "product_id" in given}
        customers = {given["customer_id"] for given in named if "customer_id" in given}
        found[split] = orders | asked | customers | {owner[key] for key in orders}
        found[split] |= {line["product_id"] for line in lines}
    assert min(map(len, found.values())) > 40
    assert found["train"].isdisjoint(found["held_out"])


def test_the_axes_are_all_there() -> None:
    """Writes, refusals, things to be told, orders to be found, changes of mind."""
    writes = Counter(sum(c.tool in RETAIL.domain.spec.writes for c in t.gold) for t in RETAIL.tasks)
    assert all(writes[count] >= 4 for count in (0, 1, 2)), writes
    users = [task.user for task in RETAIL.tasks if task.user is not None]
    assert {len(user.requests) for user in users} == {1, 2, 3}
    assert sum(any(r.instead for r in user.requests) for user in users) > 4
    rewards = [predicate for task in RETAIL.tasks for predicate in task.reward or ()]
    assert sum(bool(predicate.called) for predicate in rewards) > 15, "refusals"
    assert sum(bool(predicate.said) for predicate in rewards) > 5
    assert sum("whose number you do not know" in task.goal for task in RETAIL.tasks) > 15
    used = {call.tool for task in RETAIL.tasks for call in task.gold}
    assert {*RETAIL.domain.spec.writes, *RETAIL.domain.spec.terminal} <= used


# --- money and stock ------------------------------------------------------------------------------

CUSTOMERS = [c for c, made in RETAIL.domain.base["customers"].items() if len(made["orders"]) == 3][
    :40
]


def any_call(world: Mapping[str, Any], rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A call of a write that might work, about a customer's own order."""
    customer = world["customers"][rng.choice(CUSTOMERS)]
    order_id = rng.choice(customer["orders"])
    lines = rng.sample(world["orders"][order_id]["lines"], 1)
    new = [rng.choice(list(world["products"][line["product_id"]]["variants"])) for line in lines]
    old = [line["item_id"] for line in lines]
    method = rng.choice(list(customer["payments"]))
    swapped = {"item_ids": old, "new_item_ids": new, "payment_id": method}
    tool, arguments = rng.choice(
        [
            ("cancel_order", {"reason": "no longer needed"}),
            ("change_payment", {"payment_id": method}),
            ("swap_items", swapped),
            ("exchange_items", swapped),
            ("return_items", {"item_ids": old, "refund_to": method}),
        ]
    )
    return tool, {"order_id": order_id, **arguments}


def gift_cards(world: Mapping[str, Any]) -> float:
    """What is on the gift cards of these customers."""
    methods = [m for key in CUSTOMERS for m in world["customers"][key]["payments"].values()]
    return sum(method.get("balance", 0.0) for method in methods)


def paid(order: Mapping[str, Any], kind: str = "") -> float:
    """What was paid for an order and not refunded, by payment methods of a kind."""
    return sum(
        entry["amount"] * (1 if entry["kind"] == "payment" else -1)
        for entry in order["payments"]
        if entry["payment_id"].startswith(kind)
    )


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_no_money_comes_or_goes_and_no_stock_is_below_nothing(seed: int) -> None:
    rng = random.Random(seed)
    world = RETAIL.domain.base.fork()
    before = plain(world)
    for _ in range(15):
        tool, arguments = any_call(before, rng)
        was = gift_cards(world)
        by_gift_card = paid(world["orders"][arguments["order_id"]], "gift")
        result = RETAIL.call(world, tool, arguments)
        order = plain(world["orders"][arguments["order_id"]])
        if result.is_error:
            assert world["orders"][arguments["order_id"]] == before["orders"][arguments["order_id"]]
        lines = sum(line["price"] for line in order["lines"])
        owed = 0.0 if order["status"] == "cancelled" else lines
        assert paid(order) == pytest.approx(owed), "an order's payments are what its lines cost"
        moved = paid(order, "gift") - by_gift_card
        assert gift_cards(world) == pytest.approx(was - moved), "a gift card loses what it pays"
        if "return" in order:
            assert order["return"]["amount"] <= lines + 0.001, "no refund is more than was paid"
        before["orders"][arguments["order_id"]] = order
    balances = [
        m.get("balance", 0) for c in CUSTOMERS for m in world["customers"][c]["payments"].values()
    ]
    assert min(balances) >= 0
    stock = [v["stock"] for p in plain(world["products"]).values() for v in p["variants"].values()]
    assert min(stock) >= 0
