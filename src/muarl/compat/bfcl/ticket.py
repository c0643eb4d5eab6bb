"""Tickets of a help desk."""

from __future__ import annotations

from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, refused

_FIELDS = ("title", "description", "status", "priority")
_HIGHEST_PRIORITY = 5


class TicketAPI(Api):
    """Create, close, edit and look up tickets."""

    MODULE = "ticket_api"

    def _ticket(self, ticket_id: Any) -> Any:
        for ticket in self.state["ticket_queue"]:
            if ticket["id"] == ticket_id:
                return ticket
        return None

    @function()
    def create_ticket(self, title: Any, description: Any = "", priority: Any = 1) -> Any:
        if not self.state["current_user"]:
            return refused("User not authenticated. Please log in to create a ticket.")
        if priority < 1 or priority > _HIGHEST_PRIORITY:
            return refused("Invalid priority. Priority must be between 1 and 5.")
        ticket = {
            "id": self.state["ticket_counter"],
            "title": title,
            "description": description,
            "status": "Open",
            "priority": priority,
            "created_by": self.state["current_user"],
        }
        self.state["ticket_queue"].append(ticket)
        self.state["ticket_counter"] += 1
        return ticket

    @function()
    def get_ticket(self, ticket_id: Any) -> Any:
        return self._ticket(ticket_id) or _unknown(ticket_id)

    @function()
    def close_ticket(self, ticket_id: Any) -> Any:
        ticket = self._ticket(ticket_id)
        if not ticket:
            return _unknown(ticket_id)
        if ticket["status"] == "Closed":
            return refused(f"Ticket with ID {ticket_id} is already closed.")
        ticket["status"] = "Closed"
        return {"status": f"Ticket {ticket_id} has been closed successfully."}

    @function()
    def resolve_ticket(self, ticket_id: Any, resolution: Any) -> Any:
        ticket = self._ticket(ticket_id)
        if not ticket:
            return _unknown(ticket_id)
        if ticket["status"] == "Resolved":
            return refused(f"Ticket with ID {ticket_id} is already resolved.")
        ticket["status"] = "Resolved"
        ticket["resolution"] = resolution
        return {"status": f"Ticket {ticket_id} has been resolved successfully."}

    @function()
    def edit_ticket(self, ticket_id: Any, updates: Any) -> Any:
        ticket = self._ticket(ticket_id)
        if not ticket:
            return _unknown(ticket_id)
        if invalid := [key for key in updates.keys() if key not in _FIELDS]:  # noqa: SIM118 - a list fails
            return refused(f"Invalid fields for update: {', '.join(invalid)}")
        for key, value in updates.items():
            ticket[key] = value
        return {"status": f"Ticket {ticket_id} has been updated successfully."}

    @function()
    def ticket_login(self, username: Any, password: Any) -> Any:
        if not username or not password:
            return {"success": False}
        self.state["current_user"] = username
        return {"success": True}

    @function()
    def ticket_get_login_status(self) -> Any:
        named = "username" if self.version == "v3" else "login_status"
        return {named: bool(self.state["current_user"])}

    @function()
    def logout(self) -> Any:
        if not self.state["current_user"]:
            return {"success": False}
        self.state["current_user"] = None
        return {"success": True}

    @function()
    def get_user_tickets(self, status: Any = None) -> Any:
        user = self.state["current_user"]
        if not user:
            return [refused("User not authenticated. Please log in to view tickets.")]
        own = [ticket for ticket in self.state["ticket_queue"] if ticket["created_by"] == user]
        if not status:
            return own
        return [ticket for ticket in own if ticket["status"].lower() == status.lower()]


def _unknown(ticket_id: Any) -> dict[str, Any]:
    return refused(f"Ticket with ID {ticket_id} not found.")
