"""What the customer can do: look at her phone, change its settings, pay."""

from __future__ import annotations

from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

Switch = Literal["on", "off"]
Mode = Literal["automatic", "4g only", "3g only", "2g only"]


def serve(device: Any) -> MCPServer:
    """The user's tools. They see her phone alone; what works on it, `sync.py` says."""
    server = MCPServer("phone")

    def set_(key: str, to: str) -> str:
        device[key] = to
        return to

    _looks(server, device)

    @server.tool()
    async def set_airplane_mode(to: Switch) -> str:
        """Turn airplane mode on or off."""
        return set_("airplane_mode", to)

    @server.tool()
    async def set_mobile_data(to: Switch) -> str:
        """Turn mobile data on or off."""
        return set_("mobile_data", to)

    @server.tool()
    async def set_data_roaming(to: Switch) -> str:
        """Let mobile data be used abroad, or not."""
        return set_("data_roaming", to)

    @server.tool()
    async def set_data_saver(to: Switch) -> str:
        """Turn the data saver on or off."""
        return set_("data_saver", to)

    @server.tool()
    async def set_network_mode(to: Mode) -> str:
        """Choose which networks are used."""
        return set_("network_mode", to)

    @server.tool()
    async def set_wifi_calling(to: Switch) -> str:
        """Turn Wi-Fi calling on or off."""
        return set_("wifi_calling", to)

    @server.tool()
    async def reset_access_point() -> str:
        """Set the access point back to the carrier's."""
        return set_("access_point", "carrier")

    @server.tool()
    async def disconnect_vpn() -> str:
        """Disconnect the VPN."""
        return set_("vpn", "off")

    @server.tool()
    async def allow(permission: Literal["storage", "sms"]) -> str:
        """Allow the messages app to use something."""
        return set_(permission, "allowed")

    @server.tool()
    async def reseat_sim() -> str:
        """Take the SIM card out and put it in."""
        return set_("sim", "ready") if device["sim"] == "out" else str(device["sim"])

    @server.tool()
    async def enter_pin(pin: str) -> str:
        """Unlock the SIM card. At the third wrong PIN it is blocked."""
        if device["sim"] != "locked":
            raise ToolError("no PIN is asked for")
        if pin != device["pin"]:
            device["pin_tries"] -= 1
            device["sim"] = "locked" if device["pin_tries"] else "blocked"
            raise ToolError(f"wrong PIN, the SIM card is {device['sim']}")
        device["pin_tries"] = 3
        return set_("sim", "ready")

    @server.tool()
    async def restart() -> str:
        """Restart the phone, which registers it with its line if that is active."""
        device["registered"] = device["carrier"]["status"] == "active"
        return "on again"

    @server.tool()
    async def pay() -> str:
        """Pay what the carrier asks for."""
        if not device["payment_request"]:
            raise ToolError("nothing is to be paid")
        device["payment_request"]["paid"] = True
        return "paid"

    return server


def _looks(server: MCPServer, device: Any) -> None:
    """Tools that change nothing."""

    def shown(*keys: str) -> dict[str, Any]:
        return {key: device[key] for key in keys}

    @server.tool()
    async def status_bar() -> dict[str, str]:
        """What stands at the top of the screen."""
        works = device["works"]
        return {
            "signal": "good" if works["calls"] else "none",
            "internet": "none" if works["data"] == "none" else "yes",
            "airplane_mode": device["airplane_mode"],
        }

    @server.tool()
    async def sim_card() -> dict[str, str]:
        """The page of the SIM card: its state, and the phone's number if it can be read."""
        ready = device["sim"] == "ready"
        return {"sim": device["sim"], "number": device["number"] if ready else "unknown"}

    @server.tool()
    async def mobile_network() -> dict[str, str]:
        """The page of the mobile network."""
        return shown("mobile_data", "data_roaming", "data_saver", "network_mode")

    @server.tool()
    async def access_point() -> dict[str, str]:
        """The page of the access point: the carrier's, an old one, or one without pictures."""
        return shown("access_point")

    @server.tool()
    async def connections() -> dict[str, str]:
        """Wi-Fi calling, and the VPN: off, or the server that it goes to."""
        return shown("wifi_calling", "vpn")

    @server.tool()
    async def permissions() -> dict[str, str]:
        """What the messages app may use."""
        return shown("storage", "sms")

    @server.tool()
    async def payment_request() -> dict[str, Any]:
        """What the carrier asks to be paid."""
        request = device["payment_request"]
        return {"amount": request["amount"] if request else "nothing"}

    @server.tool()
    async def speed_test() -> dict[str, str]:
        """How fast mobile data is."""
        return {"speed": device["works"]["data"]}

    @server.tool()
    async def picture_test() -> dict[str, str]:
        """Send a picture message to oneself."""
        return {"picture": "sent" if device["works"]["pictures"] else "not sent"}
