"""The shop of tau-bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.compat.tau.retail import RetailTools, item_of, turn_into
from muarl.compat.tau.toolkit import Refused, Tau1Toolkit, tool


class Tau1Retail(RetailTools, Tau1Toolkit):
    """The shop of tau-bench."""

    def _say(self, text: str) -> str:
        return text

    def _changeable(self, order: Any) -> bool:
        return bool(order["status"] == "pending")

    def _new_variant(self, item: Any, new_item_id: str) -> Any:
        variants = self.db["products"][item["product_id"]]["variants"]
        if not (new_item_id in variants and variants[new_item_id]["available"]):
            raise Refused(f"new item {new_item_id} not found or available")
        return variants[new_item_id]

    def _put(
        self, order: Any, item_ids: Sequence[str], new_item_ids: Sequence[str], variants: list[Any]
    ) -> None:
        for item_id, new_item_id, variant in zip(item_ids, new_item_ids, variants, strict=True):
            turn_into(item_of(order, item_id), new_item_id, variant)

    @tool()
    def think(self, thought: str) -> str:
        return ""

    @tool(writes=True)
    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Any:
        return self._exchange(
            order_id, item_ids, new_item_ids, payment_method_id, missing="{} not found"
        )

    @tool(writes=True)
    def return_delivered_order_items(
        self, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> Any:
        other = "payment method should be either the original payment method or a gift card"
        return self._return(order_id, item_ids, payment_method_id, other)
