"""What the customer can do: look at her phone and change its settings."""

from __future__ import annotations

from typing import Any, Literal

from mcp.server import MCPServer

Switch = Literal["on", "off"]


def serve(device: Any) -> MCPServer:
    """The user's tools. They see her phone alone; `line` and `gb_left` of it are kept in step."""
    server = MCPServer("phone")

    @server.tool()
    async def status_bar() -> dict[str, str]:
        """What stands at the top of the screen."""
        connected = device["airplane_mode"] == "off" and device["registered"]
        signal = connected and device["line"] == "active"
        online = signal and device["mobile_data"] == "on" and device["gb_left"] > 0
        return {
            "signal": "good" if signal else "none",
            "internet": "good" if online else "none",
            "airplane_mode": device["airplane_mode"],
            "mobile_data": device["mobile_data"],
        }

    @server.tool()
    async def set_airplane_mode(to: Switch) -> str:
        """Turn airplane mode on or off."""
        device["airplane_mode"] = to
        return to

    @server.tool()
    async def set_mobile_data(to: Switch) -> str:
        """Turn mobile data on or off."""
        device["mobile_data"] = to
        return to

    @server.tool()
    async def restart() -> str:
        """Restart the phone, which registers it with its line if that is active."""
        device["restarts"] += 1
        device["registered"] = device["line"] == "active"
        return "on again"

    return server
