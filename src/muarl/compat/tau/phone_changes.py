"""What the user of telecom can change on her phone."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from muarl.compat.tau.phone import PhoneShows, on_or_off
from muarl.compat.tau.toolkit import tool

_MODES = ("4g_5g_preferred", "4g_only", "3g_only", "2g_only")
_VPN = {"server_address": "192.168.1.1", "protocol": "OpenVPN"}
BROKEN_VPN = "_broken_vpn"
"""Where her database says that tasks broke her VPN: upstream breaks what it connects to ever after."""
_MMSC = "http://mms.carrier.com/mms/wapenc"


class Apn(BaseModel):
    """Access point settings, as upstream's model checks them."""

    model_config = ConfigDict(extra="forbid")

    apn_name: Literal["internet", "broken"] = "internet"
    reset_at_reboot: bool = False
    mmsc_url: str | None = _MMSC
    mms_apn: str | None = "mms"
    mms_proxy: str | None = None
    mms_port: int | None = None


class PhoneChanges(PhoneShows):
    """What she can change."""

    @tool(writes=True)
    def toggle_airplane_mode(self) -> str:
        device = self._device
        device["airplane_mode"] = not device["airplane_mode"]
        if device["airplane_mode"]:
            self._set("wifi_connected", False)
            self._drop_vpn()
        self.simulate_network_search()
        return self._with_bar(f"Airplane Mode is now {on_or_off(device['airplane_mode'])}.")

    @tool(writes=True)
    def toggle_data(self) -> str:
        self._device["data_enabled"] = not self._device["data_enabled"]
        self.simulate_network_search()
        return self._with_bar(f"Mobile Data is now {on_or_off(self._device['data_enabled'])}.")

    @tool(writes=True)
    def toggle_roaming(self) -> str:
        self._device["roaming_enabled"] = not self._device["roaming_enabled"]
        self.simulate_network_search()
        return self._with_bar(f"Data Roaming is now {on_or_off(self._device['roaming_enabled'])}.")

    @tool(writes=True)
    def toggle_data_saver_mode(self) -> str:
        self._device["data_saver_mode"] = not self._device["data_saver_mode"]
        return self._with_bar(
            f"Data Saver Mode is now {on_or_off(self._device['data_saver_mode'])}."
        )

    @tool(writes=True)
    def toggle_wifi(self) -> str:
        device = self._device
        if device["airplane_mode"]:
            return self._with_bar("Cannot change Wi-Fi settings while Airplane Mode is ON.")
        device["wifi_enabled"] = not device["wifi_enabled"]
        if not device["wifi_enabled"]:
            self._set("wifi_connected", False)
        return self._with_bar(f"Wi-Fi is now {on_or_off(device['wifi_enabled'])}.")

    @tool(writes=True)
    def toggle_wifi_calling(self) -> str:
        device = self._device
        device["wifi_calling_enabled"] = not device["wifi_calling_enabled"]
        return self._with_bar(f"Wi-Fi Calling is now {on_or_off(device['wifi_calling_enabled'])}.")

    @tool(writes=True)
    def set_network_mode_preference(self, mode: Any) -> str:
        if isinstance(mode, str) and mode not in _MODES:
            return self._with_bar(_no_mode(mode))
        self._device["network_mode_preference"] = mode
        self.simulate_network_search()
        if mode is None:
            return self._with_bar(_no_mode(mode))
        self._mode()
        return self._with_bar(f"Preferred Network Mode set to: {mode}")

    @tool(writes=True)
    def reseat_sim_card(self) -> str:
        self._set("sim_card_missing", False)
        self.simulate_network_search()
        return self._with_bar("SIM card re-seated successfully.")

    @tool(writes=True)
    def set_apn_settings(self, apn_settings: Any) -> str:
        if isinstance(apn_settings, dict):
            apn_settings = Apn(**apn_settings).model_dump()
        self._device["active_apn_settings"] = apn_settings
        self.simulate_network_search()
        return self._with_bar(f"APN settings set to: {self._apn_name()}")

    @tool(writes=True)
    def reset_apn_settings(self) -> str:
        self._apn_name()
        self._device["active_apn_settings"]["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._with_bar("APN settings will reset at reboot.")

    @tool(writes=True)
    def connect_vpn(self) -> str:
        device = self._device
        if device["vpn_connected"]:
            return "VPN already connected."
        self._connect_vpn()
        return self._with_bar("VPN connected successfully.")

    def _connect_vpn(self) -> None:
        performance = "poor" if BROKEN_VPN in self.db else "excellent"
        self._device["vpn_connected"] = True
        self._device["vpn_details"] = {**_VPN, "server_performance": performance}

    def _drop_vpn(self) -> None:
        if self._device["vpn_connected"]:
            self._device["vpn_connected"] = False
            self._device["vpn_details"] = None

    @tool(writes=True)
    def disconnect_vpn(self) -> str:
        device = self._device
        if not device["vpn_connected"]:
            return self._with_bar("No active VPN connection to disconnect.")
        self._drop_vpn()
        return self._with_bar("VPN disconnected successfully.")

    @tool(writes=True)
    def grant_app_permission(self, app_name: str, permission: str) -> str:
        permissions = self._permissions(app_name)
        permission = permission.lower()
        if permissions is None:
            text = f"Error. App '{app_name}' not found. Cannot grant permission."
        elif permission not in permissions:
            known = list(permissions)
            text = (
                f"Error. Permission '{permission}' not tracked for app '{app_name}', "
                f"available permissions: {known}"
            )
        else:
            permissions[permission] = True
            text = f"Success. Permission '{permission}' granted to app '{app_name}'."
        return self._with_bar(text)

    @tool(writes=True)
    def reboot_device(self) -> str:
        lines = []
        self._apn_name()
        if self._device["active_apn_settings"]["reset_at_reboot"]:
            lines.append("Resetting APN settings...")
            self._device["active_apn_settings"] = Apn().model_dump()
        lines.append("Restarting network services...")
        self.simulate_network_search()
        return self._with_bar("\n".join(lines))

    @tool(writes=True)
    def make_payment(self) -> str:
        request = self._around["payment_request"]
        if request is None:
            return "You do not have a payment request."
        request["paid"] = True
        amount, bill = request["amount_due"], request["bill_id"]
        return f"Payment of {amount} USD has been made for bill {bill}."


def _no_mode(mode: Any) -> str:
    return (
        f"Failed to set network mode: '{mode}' is not a valid option. "
        f"Please use one of: {', '.join(_MODES)}"
    )
