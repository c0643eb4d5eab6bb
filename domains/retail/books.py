"""How the shop keeps its books: what changes when an order is cancelled, changed, returned, exchanged.

All of it is checked before anything is written. No money appears or goes: what an order's payments add
up to is what its lines cost, and nothing once it is cancelled; a gift card loses what it pays. Nothing
is sold that is not in stock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

from .world import cents


def find(world: Any, part: str, key: str) -> Any:
    """A record of the world.

    Raises:
        ToolError: There is none of this name.
    """
    if key not in world[part]:
        raise ToolError(f"no {part.removesuffix('s')} {key}")
    return world[part][key]


def cancel(world: Any, order_id: str, reason: str) -> float:
    """Cancel a pending order; its money goes back to where it came from. How much that is."""
    order = _order(world, order_id, "pending")
    paid = _paid(order)
    for payment_id, amount in paid.items():
        _settle(world, order, payment_id, -amount)
    for line in order["lines"]:
        _variant(world, line)["stock"] += 1
    order["status"] = "cancelled"
    order["cancelled_because"] = reason
    return cents(sum(paid.values()))


def redirect(world: Any, order_id: str, address: dict[str, str]) -> None:
    """Deliver a pending order somewhere else."""
    _order(world, order_id, "pending")["address"] = address


def pay_otherwise(world: Any, order_id: str, payment_id: str) -> None:
    """Take the money for a pending order from another payment method."""
    order = _order(world, order_id, "pending")
    method = _method(world, order, payment_id)
    paid = _paid(order)
    if set(paid) == {payment_id}:
        raise ToolError(f"the order is paid with {payment_id} already")
    owed = cents(sum(amount for key, amount in paid.items() if key != payment_id))
    _must_cover(method, owed)
    for key, amount in paid.items():
        if key != payment_id:
            _settle(world, order, key, -amount)
    _settle(world, order, payment_id, owed)


def swap(
    world: Any, order_id: str, item_ids: Sequence[str], new_item_ids: Sequence[str], payment_id: str
) -> float:
    """Change items of a pending order for other variants; the difference in price."""
    order = _order(world, order_id, "pending")
    if order["items_changed"]:
        raise ToolError("items of this order were changed before")
    method = _method(world, order, payment_id)
    pairs = _pairs(world, order, item_ids, new_item_ids)
    difference = cents(sum(new["price"] - line["price"] for line, _, new in pairs))
    _must_cover(method, difference)
    for line, new_id, new in pairs:
        new["stock"] -= 1
        _variant(world, line)["stock"] += 1
        line["item_id"], line["options"] = new_id, dict(new["options"])
        line["price"], line["clearance"] = new["price"], new["clearance"]
    _settle(world, order, payment_id, difference)
    order["items_changed"] = True
    return difference


def take_back(world: Any, order_id: str, item_ids: Sequence[str], refund_to: str) -> float:
    """Note that items come back; what they cost is refunded once they are here."""
    order = _order(world, order_id, "delivered")
    _method(world, order, refund_to)
    lines = _lines(order, item_ids)
    amount = cents(sum(line["price"] for line in lines))
    order["status"] = "return requested"
    order["return"] = {"item_ids": sorted(item_ids), "refund_to": refund_to, "amount": amount}
    return amount


def exchange(
    world: Any, order_id: str, item_ids: Sequence[str], new_item_ids: Sequence[str], payment_id: str
) -> float:
    """Put other variants aside for items that come back; the difference is settled then."""
    order = _order(world, order_id, "delivered")
    method = _method(world, order, payment_id)
    pairs = _pairs(world, order, item_ids, new_item_ids)
    difference = cents(sum(new["price"] - line["price"] for line, _, new in pairs))
    _must_cover(method, difference)
    for _, _, new in pairs:
        new["stock"] -= 1
    order["status"] = "exchange requested"
    order["exchange"] = {
        "items": {line["item_id"]: new_id for line, new_id, _ in pairs},
        "payment_id": payment_id,
        "difference": difference,
    }
    return difference


def _order(world: Any, order_id: str, status: str) -> Any:
    order = find(world, "orders", order_id)
    if order["status"] != status:
        raise ToolError(f"order {order_id} is {order['status']}, not {status}")
    return order


def _method(world: Any, order: Any, payment_id: str) -> Any:
    methods = world["customers"][order["customer_id"]]["payments"]
    if payment_id not in methods:
        raise ToolError(f"the customer of this order has no payment method {payment_id}")
    return methods[payment_id]


def _must_cover(method: Any, amount: float) -> None:
    if amount > method.get("balance", amount):
        raise ToolError(f"the gift card holds {method['balance']:.2f}, not {amount:.2f}")


def _settle(world: Any, order: Any, payment_id: str, amount: float) -> None:
    """Charge a payment method with an amount, or refund it if the amount is negative."""
    if not amount:
        return
    kind = "payment" if amount > 0 else "refund"
    entry = {"kind": kind, "payment_id": payment_id, "amount": abs(amount)}
    order["payments"] = [*map(dict, order["payments"]), entry]
    method = world["customers"][order["customer_id"]]["payments"][payment_id]
    if "balance" in method:
        method["balance"] = cents(method["balance"] - amount)


def _paid(order: Any) -> dict[str, float]:
    """What each payment method has paid for an order so far, where it is anything."""
    paid: defaultdict[str, float] = defaultdict(float)
    for entry in order["payments"]:
        signed = entry["amount"] if entry["kind"] == "payment" else -entry["amount"]
        paid[entry["payment_id"]] += signed
    return {key: cents(amount) for key, amount in paid.items() if cents(amount)}


def _lines(order: Any, item_ids: Sequence[str]) -> list[Any]:
    lines = {line["item_id"]: line for line in order["lines"]}
    if not item_ids or len(set(item_ids)) < len(item_ids):
        raise ToolError("name each item once, and at least one")
    for item_id in item_ids:
        if item_id not in lines:
            raise ToolError(f"item {item_id} is not in the order")
    return [lines[item_id] for item_id in item_ids]


def _pairs(
    world: Any, order: Any, item_ids: Sequence[str], new_item_ids: Sequence[str]
) -> list[tuple[Any, str, Any]]:
    """Lines of an order, and number and record of the variants that take their places."""
    lines = _lines(order, item_ids)
    if len(lines) != len(new_item_ids):
        raise ToolError("give as many new items as items")
    pairs = []
    for line, new_id in zip(lines, new_item_ids, strict=True):
        variants = world["products"][line["product_id"]]["variants"]
        if new_id not in variants:
            raise ToolError(f"item {new_id} is no variant of the {line['name']}")
        if new_id == line["item_id"]:
            raise ToolError(f"item {new_id} is the one in the order")
        if variants[new_id]["stock"] < 1:
            raise ToolError(f"item {new_id} is out of stock")
        pairs.append((line, new_id, variants[new_id]))
    return pairs


def _variant(world: Any, line: Any) -> Any:
    return world["products"][line["product_id"]]["variants"][line["item_id"]]
