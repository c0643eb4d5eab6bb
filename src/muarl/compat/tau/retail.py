"""The shop: sixteen tools over orders, products and users, of both generations.

What tau-bench and tau2-bench do differently stands in their classes; the rest is common. tau2's database
has every field of its models, None where unset, in the order of the models: see `tau2_database`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Sequence
from typing import Any, ClassVar

from muarl.compat.tau.calculator import calculated
from muarl.compat.tau.toolkit import Refused, Toolkit, tool

REASONS = ("no longer needed", "ordered by mistake")
UNEQUAL = "the number of items to be exchanged should match"
"""Refusal of more new items than old ones, or fewer."""


class RetailTools(Toolkit):
    """What both generations do alike."""

    reasons: ClassVar[Container[str]] = REASONS
    """For which orders are cancelled."""
    modified_items_differ: ClassVar[bool] = False
    """Whether no item of a pending order may be modified into itself."""

    def _order(self, order_id: str) -> Any:
        if order_id not in self.db["orders"]:
            raise Refused(self._say("order not found"))
        return self.db["orders"][order_id]

    def _user(self, user_id: str) -> Any:
        if user_id not in self.db["users"]:
            raise Refused(self._say("user not found"))
        return self.db["users"][user_id]

    def _method(self, order: Any, payment_method_id: str) -> Any:
        methods = self.db["users"][order["user_id"]]["payment_methods"]
        if payment_method_id not in methods:
            raise Refused(self._say("payment method not found"))
        return methods[payment_method_id]

    @abstractmethod
    def _say(self, text: str) -> str:
        """A refusal, as this generation words it."""

    @abstractmethod
    def _changeable(self, order: Any) -> bool:
        """Whether address and payment of an order may be changed."""

    @abstractmethod
    def _new_variant(self, item: Any, new_item_id: str) -> Any:
        """The variant an item is changed to, which must be there and available."""

    @tool()
    def calculate(self, expression: str) -> str:
        return calculated(expression, self._say("invalid characters in expression"))

    @tool()
    def find_user_id_by_email(self, email: str) -> Any:
        for user_id, user in self.db["users"].items():
            if user["email"].lower() == email.lower():
                return user_id
        raise Refused(self._say("user not found"))

    @tool()
    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> Any:  # noqa: A002
        for user_id, user in self.db["users"].items():
            name = user["name"]
            if (
                name["first_name"].lower() == first_name.lower()
                and name["last_name"].lower() == last_name.lower()
                and user["address"]["zip"] == zip
            ):
                return user_id
        raise Refused(self._say("user not found"))

    @tool()
    def get_order_details(self, order_id: str) -> Any:
        return self._order(order_id)

    @tool()
    def get_user_details(self, user_id: str) -> Any:
        return self._user(user_id)

    @tool()
    def get_product_details(self, product_id: str) -> Any:
        if product_id not in self.db["products"]:
            raise Refused(self._say("product not found"))
        return self.db["products"][product_id]

    @tool()
    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    @tool(writes=True)
    def cancel_pending_order(self, order_id: str, reason: str) -> Any:
        order = self._order(order_id)
        if order["status"] != "pending":
            raise Refused(self._say("non-pending order cannot be cancelled"))
        if reason not in self.reasons:
            raise Refused(self._say("invalid reason"))
        refunds = []
        for payment in order["payment_history"]:
            refunds.append(
                transaction_of("refund", payment["amount"], payment["payment_method_id"])
            )
            if "gift_card" in payment["payment_method_id"]:
                add_credit(self._method(order, payment["payment_method_id"]), payment["amount"])
        order["status"] = "cancelled"
        order["cancel_reason"] = reason
        order["payment_history"].extend(refunds)
        return order

    @tool(writes=True)
    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Any:
        order = self._order(order_id)
        if not self._changeable(order):
            raise Refused(self._say("non-pending order cannot be modified"))
        method = self._method(order, payment_method_id)
        history = order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise Refused(self._say("there should be exactly one payment for a pending order"))
        old, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old == payment_method_id:
            different = "the new payment method should be different from the current one"
            raise Refused(self._say(different))
        if method["source"] == "gift_card" and method["balance"] < amount:
            short = "insufficient gift card balance to pay for the order"
            raise Refused(self._say(short))
        history.extend(
            [
                transaction_of("payment", amount, payment_method_id),
                transaction_of("refund", amount, old),
            ]
        )
        if method["source"] == "gift_card":
            add_credit(method, -amount)
        if "gift_card" in old:
            add_credit(self._method(order, old), amount)
        return order

    def _address(
        self, address1: Any, address2: Any, city: Any, state: Any, country: Any, zip_code: Any
    ) -> dict[str, Any]:
        """An address as this generation writes it."""
        return {
            "address1": address1,
            "address2": address2,
            "city": city,
            "state": state,
            "country": country,
            "zip": zip_code,
        }

    @tool(writes=True)
    def modify_pending_order_address(
        self,
        order_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,  # noqa: A002
    ) -> Any:
        order = self._order(order_id)
        if not self._changeable(order):
            raise Refused(self._say("non-pending order cannot be modified"))
        order["address"] = self._address(address1, address2, city, state, country, zip)
        return order

    @tool(writes=True)
    def modify_user_address(
        self,
        user_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,  # noqa: A002
    ) -> Any:
        user = self._user(user_id)
        user["address"] = self._address(address1, address2, city, state, country, zip)
        return user

    def _count_items(self, order: Any, item_ids: Sequence[str], missing: str) -> None:
        there = [item["item_id"] for item in order["items"]]
        for item_id in item_ids:
            if item_ids.count(item_id) > there.count(item_id):
                raise Refused(missing.format(item_id))

    def _difference(
        self,
        order: Any,
        item_ids: Sequence[str],
        new_item_ids: Sequence[str],
        unequal: str = UNEQUAL,
        *,
        differing: bool = False,
    ) -> tuple[Any, list[Any]]:
        """What the change costs, and the variant each item becomes, which may have to be another."""
        if len(item_ids) != len(new_item_ids):
            raise Refused(self._say(unequal))
        difference: Any = 0
        variants = []
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            if differing and item_id == new_item_id:
                raise Refused(self._say("the new item id should be different from the old item id"))
            item = item_of(order, item_id)
            variant = self._new_variant(item, new_item_id)
            difference += variant["price"] - item["price"]
            variants.append(variant)
        return difference, variants

    def _exchange(
        self,
        order_id: str,
        item_ids: list[str],
        new_item_ids: list[str],
        payment_method_id: str,
        *,
        missing: str,
        unequal: str = UNEQUAL,
    ) -> Any:
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise Refused(self._say("non-delivered order cannot be exchanged"))
        self._count_items(order, item_ids, missing)
        difference = round(self._difference(order, item_ids, new_item_ids, unequal)[0], 2)
        method = self._method(order, payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            short = "insufficient gift card balance to pay for the price difference"
            raise Refused(self._say(short))
        order["status"] = "exchange requested"
        order["exchange_items"] = sorted(item_ids)
        order["exchange_new_items"] = sorted(new_item_ids)
        order["exchange_payment_method_id"] = payment_method_id
        order["exchange_price_difference"] = difference
        return order

    @tool(writes=True)
    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Any:
        order = self._order(order_id)
        if order["status"] != "pending":
            raise Refused(self._say("non-pending order cannot be modified"))
        self._count_items(order, item_ids, "{} not found")
        difference, variants = self._difference(
            order, item_ids, new_item_ids, differing=self.modified_items_differ
        )
        method = self._method(order, payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            short = "insufficient gift card balance to pay for the new item"
            raise Refused(self._say(short))
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(transaction_of(kind, abs(difference), payment_method_id))
        if method["source"] == "gift_card":
            add_credit(method, -difference)
        self._put(order, item_ids, new_item_ids, variants)
        order["status"] = "pending (item modified)"
        return order

    @abstractmethod
    def _put(
        self, order: Any, item_ids: Sequence[str], new_item_ids: Sequence[str], variants: list[Any]
    ) -> None:
        """Make the order's items the new ones."""

    def _return(
        self, order_id: str, item_ids: list[str], payment_method_id: str, other_method: str
    ) -> Any:
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise Refused(self._say("non-delivered order cannot be returned"))
        self._method(order, payment_method_id)
        first = order["payment_history"][0]["payment_method_id"]
        if "gift_card" not in payment_method_id and payment_method_id != first:
            raise Refused(self._say(other_method))
        self._count_items(order, item_ids, self._say("some item not found"))
        order["status"] = "return requested"
        order["return_items"] = sorted(item_ids)
        order["return_payment_method_id"] = payment_method_id
        return order

    @tool()
    def list_all_product_types(self) -> Any:
        return dict(sorted((p["name"], p["product_id"]) for p in self.db["products"].values()))


def transaction_of(kind: str, amount: Any, payment_method_id: str) -> dict[str, Any]:
    """An entry of a payment history."""
    return {
        "transaction_type": kind,
        "amount": amount,
        "payment_method_id": payment_method_id,
    }


def add_credit(method: Any, amount: Any) -> None:
    """Add an amount to a gift card's balance."""
    method["balance"] = round(method["balance"] + amount, 2)


def item_of(order: Any, item_id: str) -> Any:
    """The first item of an order with this id."""
    return next(item for item in order["items"] if item["item_id"] == item_id)


def turn_into(item: Any, item_id: str, variant: Any) -> None:
    """Make an item another variant of its product."""
    item["item_id"] = item_id
    item["price"] = variant["price"]
    item["options"] = variant["options"]
