"""The shop of tau2-bench: its tools, and its database as its models hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.compat.tau.retail import (
    REASONS,
    UNEQUAL,
    RetailTools,
    item_of,
    transaction_of,
    turn_into,
)
from muarl.compat.tau.toolkit import Refused, Tau2Toolkit, tool


class Tau2Retail(RetailTools, Tau2Toolkit):
    """The shop of tau2-bench, with its fault: every changed item becomes the last variant."""

    reasons = frozenset(REASONS)  # a list is no element of a set, and so no refusal but an error
    modified_items_differ = True

    def _say(self, text: str) -> str:
        return text[0].upper() + text[1:]

    def _changeable(self, order: Any) -> bool:
        return "pending" in order["status"]

    def _new_variant(self, item: Any, new_item_id: str) -> Any:
        variants = self.db["products"][item["product_id"]]["variants"]
        if new_item_id not in variants:
            raise Refused("Variant not found")
        if not variants[new_item_id]["available"]:
            raise Refused(f"New item {new_item_id} not found or available")
        return variants[new_item_id]

    def _put(
        self, order: Any, item_ids: Sequence[str], new_item_ids: Sequence[str], variants: list[Any]
    ) -> None:
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            turn_into(item_of(order, item_id), new_item_id, variants[-1])

    def _address(self, *parts: Any) -> dict[str, Any]:
        address = super()._address(*parts)
        for key, value in address.items():
            if not isinstance(value, str):
                raise TypeError(f"{key} should be a valid string")
        return {key: address[key] for key in _ADDRESS}

    @tool()
    def get_item_details(self, item_id: str) -> Any:
        for product in self.db["products"].values():
            if item_id in product["variants"]:
                return product["variants"][item_id]
        raise Refused("Item not found")

    @tool(writes=True)
    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Any:
        return self._exchange(
            order_id,
            item_ids,
            new_item_ids,
            payment_method_id,
            missing="Number of {} not found.",
            unequal=f"{UNEQUAL}.",
        )

    @tool(writes=True)
    def return_delivered_order_items(
        self, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> Any:
        other = "payment method should be the original payment method"
        return self._return(order_id, item_ids, payment_method_id, other)


def tau2_database(db: Any) -> dict[str, Any]:
    """The database as tau2's models hold it: all fields, in their order, money as floats.

    Args:
        db: The published `db.json`.
    """
    return {
        "products": {key: _product(value) for key, value in db["products"].items()},
        "users": {key: _user(value) for key, value in db["users"].items()},
        "orders": {key: _order(value) for key, value in db["orders"].items()},
    }


_ORDER = ("order_id", "user_id", "address", "items", "status", "fulfillments", "payment_history")
_ORDER_LATER = (
    *("cancel_reason", "exchange_items", "exchange_new_items", "exchange_payment_method_id"),
    *("exchange_price_difference", "return_items", "return_payment_method_id"),
)
_ADDRESS = ("address1", "address2", "city", "country", "state", "zip")


def _order(order: Any) -> dict[str, Any]:
    return {
        **{key: order[key] for key in _ORDER},
        "items": [
            {**{key: item[key] for key in ("name", "product_id", "item_id")}, **_priced(item)}
            for item in order["items"]
        ],
        "payment_history": [
            transaction_of(p["transaction_type"], float(p["amount"]), p["payment_method_id"])
            for p in order["payment_history"]
        ],
        **{key: order.get(key) for key in _ORDER_LATER},
    }


def _priced(item: Any) -> dict[str, Any]:
    return {"price": float(item["price"]), "options": item["options"]}


def _product(product: Any) -> dict[str, Any]:
    variants = {
        key: {**variant, "price": float(variant["price"])}
        for key, variant in product["variants"].items()
    }
    return {"name": product["name"], "product_id": product["product_id"], "variants": variants}


def _user(user: Any) -> dict[str, Any]:
    methods = {
        key: {**method, **({"balance": float(method["balance"])} if "balance" in method else {})}
        for key, method in user["payment_methods"].items()
    }
    keys = ("user_id", "name", "address", "email", "payment_methods", "orders")
    return {**{key: user[key] for key in keys}, "payment_methods": methods}
