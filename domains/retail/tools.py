"""The shop's tool server. Tools keep the books right; most rules are for the agent to keep."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from . import books

Items = Annotated[list[str], Field(description="Item numbers, such as V123456.")]
NewItems = Annotated[list[str], Field(description="Their variants, in the same order.")]
Reason = Literal["no longer needed", "ordered by mistake"]


def serve(world: Any) -> MCPServer:
    """All state lives in `world`, so one server can be shared by all dialogues."""
    server = MCPServer("retail")
    _add_reads(server, world)
    _add_writes(server, world)

    @server.tool()
    async def transfer_to_human(summary: str) -> str:
        """Hand the customer over to a person. Ends the conversation."""
        return "handed over"

    return server


def _add_reads(server: MCPServer, world: Any) -> None:
    @server.tool()
    async def find_customer_by_email(email: str) -> dict[str, str]:
        """Customer number of the customer with this email address."""
        wanted = email.strip().lower()
        return _the_one(world, lambda customer: customer["email"] == wanted)

    @server.tool()
    async def find_customer_by_name(full_name: str, postcode: str) -> dict[str, str]:
        """Customer number of the customer of this name whose home address has this postcode."""
        wanted = full_name.strip().lower()
        return _the_one(
            world,
            lambda customer: (
                customer["full_name"].lower() == wanted
                and customer["address"]["postcode"] == postcode.strip()
            ),
        )

    @server.tool()
    async def get_customer(customer_id: str) -> dict[str, Any]:
        """Name, home address, payment methods and orders of a customer."""
        customer = books.find(world, "customers", customer_id)
        orders = [
            {"order_id": order_id, "placed_on": world["orders"][order_id]["placed_on"]}
            for order_id in customer["orders"]
        ]
        return {**customer, "orders": orders}

    @server.tool()
    async def get_order(order_id: str) -> dict[str, Any]:
        """Status, dates, address, items and payments of an order."""
        return dict(books.find(world, "orders", order_id))

    @server.tool()
    async def list_products() -> dict[str, str]:
        """Name and product number of everything in the shop."""
        return {product["name"]: key for key, product in world["products"].items()}

    @server.tool()
    async def get_product(product_id: str) -> dict[str, Any]:
        """Variants of a product: item number, options, price, pieces in stock."""
        return dict(books.find(world, "products", product_id))


def _add_writes(server: MCPServer, world: Any) -> None:
    @server.tool()
    async def cancel_order(order_id: str, reason: Reason) -> str:
        """Cancel a pending order. Cannot be undone."""
        refunded = books.cancel(world, order_id, reason)
        return f"cancelled, {refunded:.2f} refunded"

    @server.tool()
    async def change_delivery_address(order_id: str, street: str, city: str, postcode: str) -> str:
        """Deliver a pending order somewhere else. Street with the house number: "12 Mill Road"."""
        books.redirect(world, order_id, _address(street, city, postcode))
        return "ok"

    @server.tool()
    async def change_home_address(customer_id: str, street: str, city: str, postcode: str) -> str:
        """Change where a customer lives; her orders go where they went before."""
        customer = books.find(world, "customers", customer_id)
        customer["address"] = _address(street, city, postcode)
        return "ok"

    @server.tool()
    async def change_payment(order_id: str, payment_id: str) -> str:
        """Take the money for a pending order from another payment method of the customer's."""
        books.pay_otherwise(world, order_id, payment_id)
        return "ok"

    @server.tool()
    async def swap_items(
        order_id: str, item_ids: Items, new_item_ids: NewItems, payment_id: str
    ) -> str:
        """Change items of a pending order for other variants of the same products; once an order."""
        return _settled(books.swap(world, order_id, item_ids, new_item_ids, payment_id))

    @server.tool()
    async def return_items(order_id: str, item_ids: Items, refund_to: str) -> str:
        """Have items of a delivered order sent back, and refunded to a payment method; once an order."""
        amount = books.take_back(world, order_id, item_ids, refund_to)
        return f"return requested, {amount:.2f} will be refunded"

    @server.tool()
    async def exchange_items(
        order_id: str, item_ids: Items, new_item_ids: NewItems, payment_id: str
    ) -> str:
        """Exchange items of a delivered order for other variants of the same products; once an order."""
        difference = books.exchange(world, order_id, item_ids, new_item_ids, payment_id)
        return f"exchange requested, {_settled(difference)}"


def _the_one(world: Any, is_meant: Any) -> dict[str, str]:
    for customer_id, customer in world["customers"].items():
        if is_meant(customer):
            return {"customer_id": customer_id}
    raise ToolError("no such customer")


def _address(street: str, city: str, postcode: str) -> dict[str, str]:
    return {"street": street.strip(), "city": city.strip(), "postcode": postcode.strip()}


def _settled(difference: float) -> str:
    if difference < 0:
        return f"{-difference:.2f} refunded"
    return f"{difference:.2f} charged" if difference else "no difference in price"
