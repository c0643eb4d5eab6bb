"""What the help desk can do: look up customers, lines, plans and bills, and change lines."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

Gigabytes = Annotated[int, Field(ge=1, le=50)]


def serve(world: Any) -> MCPServer:
    """The agent's tools. They leave `world["device"]` alone: it is in somebody else's hand.

    They hold to what is possible, not to what the desk's rules allow; that is the agent's to know.
    """
    server = MCPServer("account")

    def record(kind: str, key: str) -> Any:
        if key not in world[kind]:
            raise ToolError(f"no {kind[:-1]} {key}")
        return world[kind][key]

    def plan_of(line_id: str) -> Any:
        return record("plans", record("lines", line_id)["plan"])

    def of_customer(kind: str, customer_id: str) -> list[str]:
        return [key for key, each in world[kind].items() if each["customer"] == customer_id]

    def account(customer_id: str) -> dict[str, Any]:
        return {
            "name": world["customers"][customer_id]["name"],
            "lines": of_customer("lines", customer_id),
            "bills": of_customer("bills", customer_id),
        }

    @server.tool()
    async def find_customer(name: str, birth_date: str) -> dict[str, Any]:
        """A customer by full name and birth date (1990-12-31): her lines and bills."""
        for key, customer in world["customers"].items():
            if customer["name"].casefold() == name.casefold() and (
                customer["birth_date"] == birth_date
            ):
                return account(key)
        raise ToolError("no such customer")

    @server.tool()
    async def find_number(number: str) -> dict[str, Any]:
        """The line with a phone number, and its customer's lines and bills."""
        for key, line in world["lines"].items():
            if line["number"] == number:
                return {"line_id": key, **account(line["customer"])}
        raise ToolError(f"no line has the number {number}")

    @server.tool()
    async def get_line(line_id: str) -> dict[str, Any]:
        """A line: its number, plan, phone, status, roaming, data left, end of contract, notes."""
        return dict(record("lines", line_id))

    @server.tool()
    async def get_plan(line_id: str) -> dict[str, Any]:
        """The plan of a line: its name, roaming, the price of a GB more, how much data may be added at a time."""
        return dict(plan_of(line_id))

    @server.tool()
    async def price_of_data(line_id: str, gb: Gigabytes) -> str:
        """What so many GB more would cost on a line."""
        return f"${gb * plan_of(line_id)['gb_price']:.2f}"

    @server.tool()
    async def get_bill(bill_id: str) -> dict[str, Any]:
        """A bill: its amount, when it is due, and whether it is paid."""
        return dict(record("bills", bill_id))

    @server.tool()
    async def resume_line(line_id: str) -> str:
        """Make a suspended line active."""
        line = record("lines", line_id)
        if line["status"] != "suspended":
            raise ToolError(f"the line is {line['status']}")
        line["status"] = "active"
        return "active"

    @server.tool()
    async def suspend_line(line_id: str) -> str:
        """Suspend an active line: nobody can use it then."""
        line = record("lines", line_id)
        if line["status"] != "active":
            raise ToolError(f"the line is {line['status']}")
        line["status"] = "suspended"
        return "suspended"

    @server.tool()
    async def set_roaming(line_id: str, to: Literal["on", "off"]) -> str:
        """Let a line be used abroad, or not."""
        record("lines", line_id)["roaming"] = to
        return to

    @server.tool()
    async def add_data(line_id: str, gb: Gigabytes) -> str:
        """Add data to a line, charged to the customer."""
        line = record("lines", line_id)
        line["gb_left"] += gb
        return f"{line['gb_left']:g} GB left"

    @server.tool()
    async def request_payment(bill_id: str) -> str:
        """Send the customer a payment request for a bill, to be paid on her phone."""
        bill = record("bills", bill_id)
        if bill["status"] != "unpaid":
            raise ToolError(f"the bill is {bill['status']}")
        for key in of_customer("bills", bill["customer"]):
            if world["bills"][key]["status"] == "requested":
                raise ToolError(f"she has not paid bill {key} yet")
        bill["status"] = "requested"
        return "requested"

    @server.tool()
    async def transfer_to_human() -> str:
        """Hand the customer over."""
        return "ok"

    return server
