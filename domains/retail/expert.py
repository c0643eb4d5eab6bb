"""The shop's expert: serves customers by the rules, with bad habits on request. It is not told the task."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from muarl.agent_script import Talk
from muarl.clerk import Clerk, Refused

from .reading import EMAIL, NAME, POSTCODE, Place, Wish, order_in, read
from .world import TODAY

Record = dict[str, Any]
RETURN_DAYS = 30
REASONS = ("no longer needed", "ordered by mistake")


class Expert(Clerk[Wish]):
    """Plays the shop for one dialogue."""

    _customer: Record
    _customer_id: str

    def read(self, heard: str) -> Wish | None:
        return read(heard)

    def identify(self) -> Talk[None]:
        email = EMAIL.search((yield from self.ask("May I have your email address?")))
        if email:
            found = yield from self.use("find_customer_by_email", email=email[0])
        else:
            name = NAME.search((yield from self.ask("What is your full name?")))
            postcode = POSTCODE.search((yield from self.ask("And your postcode?")))
            found = yield from self.use(
                "find_customer_by_name",
                full_name=name[0] if name else "",
                postcode=postcode[0] if postcode else "",
            )
        self._customer_id = found["customer_id"]
        self._orders: dict[str, Record] = {}

    def look(self) -> Talk[None]:
        # Her address and what her gift card holds may have changed in this conversation.
        self._customer = yield from self.use("get_customer", customer_id=self._customer_id)

    def forget(self, changed: Mapping[str, Any]) -> None:
        self._orders.pop(changed.get("order_id", ""), None)

    # --- what customers want ----------------------------------------------------------------------

    def _cancel(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        self.forbid(wish.reason not in REASONS, "that is no reason for which we cancel")
        summary = f"Cancel order {wish.order_id}{self._of(wish)}: {wish.reason}"
        _must_be(order, "pending")
        reason = wish.reason if wish.reason in REASONS else REASONS[0]
        return (
            yield from self.change(summary, "cancel_order", order_id=wish.order_id, reason=reason)
        )

    def _give_back(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        _must_be(order, "delivered")
        lines = self._returnable(wish, order)
        method = self._method(wish.method, order)
        kind = self._customer["payments"][method]["kind"]
        original = method in {entry["payment_id"] for entry in order["payments"]}
        self.forbid(kind != "gift card" and not original, "refunds do not go to another method")
        summary = f"Return the {wish.item} of order {wish.order_id}, refunded to the {wish.method}"
        return (
            yield from self.change(
                summary,
                "return_items",
                order_id=wish.order_id,
                item_ids=[line["item_id"] for line in lines],
                refund_to=method,
            )
        )

    def _swap(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        if order["status"] != "pending":
            _must_be(order, "delivered")
            lines = self._returnable(wish, order)
        else:
            lines = _lines(wish, order)
            if order["items_changed"]:
                raise Refused("items of this order were changed before")
        method = self._method(wish.method, order)
        new = []
        difference = 0.0
        for line in lines:
            product = yield from self.use("get_product", product_id=line["product_id"])
            item_id = _chosen(wish.want, line, product["variants"])
            new.append(item_id)
            difference += product["variants"][item_id]["price"] - line["price"]
        balance = self._customer["payments"][method].get("balance")
        if balance is not None and round(difference, 2) > balance:
            raise Refused("the gift card does not cover the difference")
        summary = (
            f"The {wish.item} of order {wish.order_id} for the {wish.want} one, a difference of "
            f"{difference:.2f} on the {wish.method}"
        )
        tool = "swap_items" if order["status"] == "pending" else "exchange_items"
        return (
            yield from self.change(
                summary,
                tool,
                order_id=wish.order_id,
                item_ids=[line["item_id"] for line in lines],
                new_item_ids=new,
                payment_id=method,
            )
        )

    def _redirect(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        if wish.place is None:
            where, arguments = "your home address", self._customer["address"]
        else:
            where, arguments = self._deliverable(wish.place), wish.place.arguments
        _must_be(order, "pending")
        summary = f"Deliver order {wish.order_id}{self._of(wish)} to {where}"
        return (
            yield from self.change(
                summary, "change_delivery_address", order_id=wish.order_id, **arguments
            )
        )

    def _move(self, wish: Wish) -> Talk[str]:
        if wish.place is None:
            return (yield from self.ask("What can I do for you?"))
        summary = f"Your home address is {self._deliverable(wish.place)} from now on"
        return (
            yield from self.change(
                summary,
                "change_home_address",
                customer_id=self._customer_id,
                **wish.place.arguments,
            )
        )

    def _repay(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        _must_be(order, "pending")
        method = self._method(wish.method, order)
        balance = self._customer["payments"][method].get("balance")
        owed = sum(line["price"] for line in order["lines"])
        if balance is not None and balance < round(owed, 2):
            raise Refused("the gift card does not cover the order")
        summary = f"Order {wish.order_id}{self._of(wish)} is paid with the {wish.method}"
        return (
            yield from self.change(
                summary, "change_payment", order_id=wish.order_id, payment_id=method
            )
        )

    def _how_much_back(self, wish: Wish) -> Talk[str]:
        order = yield from self._order(wish)
        amount = sum(line["price"] for line in _lines(wish, order))
        return (yield from self.ask(f"That would be {amount:.2f} euros. Anything else?"))

    def _cheapest(self, wish: Wish) -> Talk[str]:
        variants = yield from self._variants(wish)
        price = min(variant["price"] for variant in variants if variant["stock"])
        return (yield from self.ask(f"It costs {price:.2f} euros. Anything else?"))

    def _how_many(self, wish: Wish) -> Talk[str]:
        variants = yield from self._variants(wish)
        count = sum(variant["stock"] > 0 for variant in variants)
        return (yield from self.ask(f"We have {count} of them in stock. Anything else?"))

    def _repair(self, wish: Wish) -> Talk[str]:
        yield from self._order(wish)
        summary = f"wants the {wish.item} of order {wish.order_id} repaired"
        yield from self.use("transfer_to_human", summary=summary)
        raise AssertionError("the conversation is over")

    # --- what is needed for it --------------------------------------------------------------------

    def _order(self, wish: Wish) -> Talk[Record]:
        """The order that is meant, looked up; asked for, or found by what is in it."""
        if not wish.order_id:
            wish.order_id = order_in((yield from self.ask("Which order is it?")))
        if wish.order_id:
            order: Record = yield from self._look_up(wish.order_id)
            if order["customer_id"] != self._customer_id:
                raise Refused("it is not your order")
            return order
        for placed in self._customer["orders"]:
            order = yield from self._look_up(placed["order_id"])
            if {line["name"] for line in order["lines"]}.issuperset(wish.items):
                wish.order_id = placed["order_id"]
                return order
        raise Refused("there is no such order")

    def _look_up(self, order_id: str) -> Talk[Record]:
        """An order; each is looked up until it is changed."""
        if order_id not in self._orders:
            self._orders[order_id] = yield from self.use("get_order", order_id=order_id)
        return self._orders[order_id]

    def _variants(self, wish: Wish) -> Talk[list[Record]]:
        products = yield from self.use("list_products")
        product = yield from self.use("get_product", product_id=products[wish.item])
        return list(product["variants"].values())

    def _returnable(self, wish: Wish, order: Record) -> list[Record]:
        lines = _lines(wish, order)
        days = (TODAY - date.fromisoformat(order["delivered_on"])).days
        self.forbid(days > RETURN_DAYS, "it was delivered too long ago")
        self.forbid(any(line["clearance"] for line in lines), "it is from the clearance")
        return lines

    def _method(self, said: str, order: Record) -> str:
        """The payment method that a customer means."""
        if said == "original payment":
            return str(order["payments"][-1]["payment_id"])
        for key, method in self._customer["payments"].items():
            if said == method["kind"] or said.endswith(method.get("last_four", "none")):
                return str(key)
        raise Refused("you have no such payment method")

    def _deliverable(self, place: Place) -> str:
        self.forbid(place.street.startswith("PO Box"), "we do not deliver to post boxes")
        return place.text

    def _of(self, wish: Wish) -> str:
        return f" with the {wish.item}" if wish.item else ""


def _must_be(order: Record, status: str) -> None:
    if order["status"] != status:
        raise Refused(f"the order is {order['status']}")


def _lines(wish: Wish, order: Record) -> list[Record]:
    named = {line["name"]: line for line in order["lines"]}
    if not wish.items or not named.keys() >= set(wish.items):
        raise Refused("it is not in the order")
    return [named[item] for item in wish.items]


def _chosen(want: str, line: Record, variants: Mapping[str, Record]) -> str:
    """The variant that a customer means: "cheapest", "cheapest teal", or "teal" and else the same."""
    value = want.removeprefix("cheapest").strip()
    others = {key: variant for key, variant in variants.items() if key != line["item_id"]}
    if want.startswith("cheapest"):
        fitting = {
            key: variant
            for key, variant in others.items()
            if variant["stock"] and (not value or value in variant["options"].values())
        }
        if not fitting:
            raise Refused("there is none in stock")
        return min(fitting, key=lambda key: float(fitting[key]["price"]))
    for key, variant in others.items():
        differing = set(variant["options"].values()) - set(line["options"].values())
        if differing == {value}:
            if not variant["stock"]:
                raise Refused("it is out of stock")
            return key
    raise Refused("there is no such variant")
