"""The airline's tool server. Tools keep the books right; most rules are for the agent to keep."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from . import books
from .offers import connections, direct

Cabin = Literal["economy", "comfort", "business"]


class Segment(BaseModel):
    """A flight on a day."""

    flight: str
    date: Annotated[str, Field(description="2026-05-20")]


class Passenger(BaseModel):
    """Somebody who flies."""

    name: str
    birth_date: Annotated[str, Field(description="1990-12-31")]


def serve(world: Any) -> MCPServer:
    """All state lives in `world`, so one server can be shared by all dialogues."""
    server = MCPServer("airline")
    _add_reads(server, world)
    _add_bookings(server, world)
    _add_changes(server, world)

    @server.tool()
    async def transfer_to_human(summary: str) -> str:
        """Hand the traveller over to a person. Ends the conversation."""
        return "handed over"

    return server


def _add_reads(server: MCPServer, world: Any) -> None:
    @server.tool()
    async def verify_traveller(user_id: str, birth_date: str) -> dict[str, Any]:
        """Profile of a traveller, if the date of birth (1990-12-31) is right."""
        traveller = world["travellers"].get(user_id)
        if traveller is None or traveller["birth_date"] != birth_date:
            raise ToolError("traveller number and date of birth do not go together")
        return {"user_id": user_id, **traveller}

    @server.tool()
    async def get_reservation(reservation_id: str) -> dict[str, Any]:
        """Flights, passengers, cabin, bags and payments of a reservation, and how its flights stand."""
        reservation = books.find(world, "reservations", reservation_id)
        segments = [
            {**segment, "status": _day(world, segment["flight"], segment["date"])["status"]}
            for segment in reservation["segments"]
        ]
        return {"reservation_id": reservation_id, **reservation, "segments": segments}

    @server.tool()
    async def get_flight(flight: str, date: str) -> dict[str, Any]:
        """How a flight stands on a day (2026-05-20), with seats left and fares by cabin."""
        if date not in books.find(world, "flights", flight)["days"]:
            raise ToolError(f"{flight} is not known for {date}")
        return dict(_day(world, flight, date))

    @server.tool()
    async def list_airports() -> dict[str, str]:
        """Codes of all airports, and their cities."""
        return {code: airport["city"] for code, airport in world["airports"].items()}

    @server.tool()
    async def search_flights(origin: str, destination: str, date: str) -> dict[str, Any]:
        """Direct flights between two airports (codes) on a day, with seats and fares by cabin."""
        return {"flights": [offer for (offer,) in direct(world, origin, destination, date)]}

    @server.tool()
    async def search_connections(origin: str, destination: str, date: str) -> dict[str, Any]:
        """Pairs of flights with one stop between two airports (codes) on a day."""
        return {"connections": list(connections(world, origin, destination, date))}


def _add_bookings(server: MCPServer, world: Any) -> None:
    @server.tool()
    async def book_trip(
        user_id: str,
        segments: list[Segment],
        cabin: Cabin,
        passengers: list[Passenger],
        bags: Annotated[int, Field(description="All bags, free ones included.")],
        paid_bags: Annotated[int, Field(description="Those of them that cost something.")],
        insurance: bool,
        payment_id: Annotated[str, Field(description="Card or gift card.")],
        certificate_id: Annotated[str, Field(description="Pays first, and is used up.")] = "",
    ) -> str:
        """Book flights. Cannot be undone."""
        key, owed = books.book(
            world,
            user_id,
            [segment.model_dump() for segment in segments],
            cabin,
            [person.model_dump() for person in passengers],
            bags,
            paid_bags,
            insurance,
            payment_id,
            certificate_id,
        )
        return f"booked as {key} for {owed} euros"

    @server.tool()
    async def cancel_reservation(reservation_id: str) -> str:
        """Cancel a reservation and refund it. Cannot be undone."""
        return f"cancelled, {books.cancel(world, reservation_id)} euros refunded"

    @server.tool()
    async def issue_certificate(user_id: str, amount: int) -> str:
        """Give a traveller a certificate as compensation."""
        return books.give_certificate(world, user_id, amount)


def _add_changes(server: MCPServer, world: Any) -> None:
    @server.tool()
    async def change_flights(reservation_id: str, segments: list[Segment], payment_id: str) -> str:
        """Put a reservation on other flights: give all of its flights, also those that stay."""
        chosen = [segment.model_dump() for segment in segments]
        return _settled(books.rebook(world, reservation_id, chosen, payment_id))

    @server.tool()
    async def change_cabin(reservation_id: str, cabin: Cabin, payment_id: str) -> str:
        """Put all flights and passengers of a reservation into another cabin."""
        return _settled(books.change_cabin(world, reservation_id, cabin, payment_id))

    @server.tool()
    async def add_bags(reservation_id: str, bags: int, paid_bags: int, payment_id: str) -> str:
        """Set all bags of a reservation, and how many of them are paid for, those of before included."""
        return _settled(books.add_bags(world, reservation_id, bags, paid_bags, payment_id))

    @server.tool()
    async def correct_name(reservation_id: str, name: str, new_name: str) -> str:
        """Correct the name of a passenger."""
        books.rename(world, reservation_id, name, new_name)
        return "ok"


def _day(world: Any, flight: str, date: str) -> Any:
    return world["flights"][flight]["days"][date]


def _settled(amount: int) -> str:
    if amount < 0:
        return f"{-amount} euros refunded"
    return f"{amount} euros charged" if amount else "nothing to pay"
