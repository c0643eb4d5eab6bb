"""The user's side of telecom: her phone, and what surrounds it.

What the phone shows of the network follows from a search of it, which upstream repeats when something
that matters was touched; in between it may show what is no longer so.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from muarl.compat.tau.toolkit import Tau2Toolkit, tool

_MODES = ("4g_5g_preferred", "4g_only", "3g_only", "2g_only")
_SEARCHED = {
    "4g_5g_preferred": ("5G", "4G"),
    "4g_only": ("4G",),
    "3g_only": ("3G",),
    "2g_only": ("2G",),
}
"""Which networks each preference tries, in this order."""

_BARS = {"poor": "📶¹ Poor", "fair": "📶² Fair", "good": "📶³ Good", "excellent": "📶⁴ Excellent"}
_SIGNAL_FACTORS = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
_MBPS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0)}
_VPN_FACTOR, _SAVER_FACTOR = 0.1, 0.2
_SPEEDS = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))
_REMARKS = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}
_SIM = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}
_GOOD_VPN = {
    "server_address": "192.168.1.1",
    "protocol": "OpenVPN",
    "server_performance": "excellent",
}
_MMSC = "http://mms.carrier.com/mms/wapenc"


class _Apn(BaseModel):
    """Access point settings, as upstream's model checks them."""

    model_config = ConfigDict(extra="forbid")

    apn_name: Literal["internet", "broken"] = "internet"
    reset_at_reboot: bool = False
    mmsc_url: str | None = _MMSC
    mms_apn: str | None = "mms"
    mms_proxy: str | None = None
    mms_port: int | None = None


class TelecomUser(Tau2Toolkit):
    """The user's thirty tools."""

    @property
    def _device(self) -> Any:
        return self.db["device"]

    @property
    def _around(self) -> Any:
        return self.db["surroundings"]

    # What she can look at.

    @tool()
    def check_status_bar(self) -> str:
        return f"Status Bar: {self._status_bar()}"

    def _status_bar(self) -> str:
        device = self._device
        parts = []
        if device["airplane_mode"]:
            parts.append("✈️ Airplane Mode")
        else:
            signal = device["network_signal_strength"]
            bars = _BARS.get(signal, "📵 No Signal")
            parts.append(bars)
            if signal != "none":
                parts.append(device["network_technology_connected"])
            works = device["data_enabled"] and signal != "none"
            parts.append("📱 Data Enabled" if works else "📵 Data Disabled")
            if device["data_saver_mode"] and works:
                parts.append("🔽 Data Saver")
        if device["wifi_enabled"] and device["wifi_connected"]:
            ssid = device["wifi_ssid"]
            parts.append(f"📡 Connected to {ssid}" if ssid else "📡 Enabled")
        if device["vpn_connected"]:
            parts.append("🔒 VPN Connected")
        parts.append(f"🔋 {device['battery_level']}%")
        return " | ".join(parts)

    def _with_bar(self, text: str) -> str:
        return f"{text}\nStatus Bar: {self._status_bar()}"

    @tool()
    def check_network_status(self) -> str:
        device = self._device
        lines = [
            f"Airplane Mode: {_on(device['airplane_mode'])}",
            f"SIM Card Status: {self._sim()}",
            f"Cellular Connection: {device['network_connection_status']}",
            f"Cellular Signal: {device['network_signal_strength']}",
            f"Cellular Network Type: {device['network_technology_connected']}",
            f"Mobile Data Enabled: {_yes(device['data_enabled'])}",
            f"Data Roaming Enabled: {_yes(device['roaming_enabled'])}",
            f"Wi-Fi Radio: {_on(device['wifi_enabled'])}",
            f"Wi-Fi Connected: {_yes(device['wifi_connected'])}",
        ]
        if device["wifi_connected"]:
            lines.append(f"Connected Wi-Fi Network: {device['wifi_ssid']}")
        return "\n".join(lines)

    @tool()
    def check_network_mode_preference(self) -> str:
        return f"Network Mode Preference: {self._device['network_mode_preference']}"

    def _sim(self) -> str:
        return (
            "missing" if self._device["sim_card_missing"] else str(self._device["sim_card_status"])
        )

    @tool()
    def check_sim_status(self) -> str:
        return _SIM[self._sim()]

    @tool()
    def check_data_restriction_status(self) -> str:
        if self._device["data_saver_mode"]:
            return "Data Saver mode is ON (limits data usage)."
        return "Data Saver mode is OFF."

    @tool()
    def check_apn_settings(self) -> str:
        apn = self._device["active_apn_settings"]
        url = apn["mmsc_url"] if apn["mmsc_url"] else "Not Set"
        return (
            f"Current APN Name: {apn['apn_name']}\n"
            f"MMSC URL (for picture messages): {url}\n"
            "(These are technical settings, usually best left unchanged.)"
        )

    @tool()
    def check_wifi_status(self) -> str:
        device = self._device
        if not device["wifi_enabled"]:
            return "Wi-Fi is turned OFF."
        if device["wifi_connected"]:
            ssid, signal = device["wifi_ssid"], device["wifi_signal_strength"]
            return f"Wi-Fi is ON and connected to '{ssid}'. Signal strength: {signal}."
        return "Wi-Fi is ON but not connected to any network."

    @tool()
    def check_wifi_calling_status(self) -> str:
        return f"Wi-Fi Calling is currently turned {_on(self._device['wifi_calling_enabled'])}."

    @tool()
    def check_vpn_status(self) -> str:
        device = self._device
        if device["vpn_connected"]:
            details = device["vpn_details"]
            if not details:
                return "VPN is ON and connected (no specific details available)."
            performance = details["server_performance"]
            shown = (
                f"{{'server_address': {details['server_address']!r}, "
                f"'protocol': {details['protocol']!r}, "
                f"'server_performance': <PerformanceLevel.{performance.upper()}: {performance!r}>}}"
            )
            return f"VPN is ON and connected. Details: {shown}"
        if device["vpn_enabled_setting"]:
            return "VPN is enabled in settings, but currently not connected."
        return "VPN is turned OFF."

    @tool()
    def check_installed_apps(self) -> str:
        names = ", ".join(self._device["app_statuses"])
        return f"The following apps are installed on the phone: {names}"

    def _permissions(self, app_name: Any) -> Any:
        app = self._device["app_statuses"].get(app_name)
        return None if app is None else app["permissions"]

    @tool()
    def check_app_status(self, app_name: str) -> str:
        permissions = self._permissions(app_name)
        if permissions is None:
            return f"App '{app_name}' not found on this phone."
        granted = [name for name, given in permissions.items() if given]
        lines = [f"Status for App: {app_name}", " - Permissions Granted:"]
        return "\n".join([*lines, *(f"   - {name}" for name in granted)])

    @tool()
    def check_app_permissions(self, app_name: str) -> str:
        permissions = self._permissions(app_name)
        if permissions is None:
            return f"App '{app_name}' not found on this phone."
        granted = [name for name, given in permissions.items() if given]
        if not granted:
            return f"App '{app_name}' currently has no permissions granted."
        return f"App '{app_name}' has permission for: {', '.join(granted)}."

    @tool()
    def check_payment_request(self) -> str:
        request = self._around["payment_request"]
        if request is None:
            return "No payment request has been made."
        amount, bill = request["amount_due"], request["bill_id"]
        return f"You have a payment request for bill {bill} of {amount} USD."

    @tool()
    def can_send_mms(self) -> str:
        can = "can" if self._mms() else "cannot"
        return f"Your messaging app {can} send MMS messages."

    @tool()
    def run_speed_test(self) -> str:
        speed, level = self._speed()
        if speed is None:
            return "Speed test failed: No Connection."
        return f"Speed Test Result: {speed:.2f} Mbps ({level}). {_REMARKS[level]}"

    # How the phone works.

    def _data_works(self) -> bool:
        device, around = self._device, self._around
        if device["airplane_mode"] or device["network_signal_strength"] == "none":
            return False
        if device["network_connection_status"] == "no_service":
            return False
        if around["is_abroad"] and not (device["roaming_enabled"] and around["roaming_allowed"]):
            return False
        return bool(device["data_enabled"] and not around["mobile_data_usage_exceeded"])

    def _speed(self) -> tuple[float | None, str]:
        if not self._data_works():
            return None, "No Connection"
        device = self._device
        low, high = _MBPS[device["network_technology_connected"]]
        speed = (low + high) / 2 * _SIGNAL_FACTORS[device["network_signal_strength"]]
        details = device["vpn_details"]
        if device["vpn_connected"] and details and details["server_performance"] == "poor":
            speed *= _VPN_FACTOR
        if device["data_saver_mode"]:
            speed *= _SAVER_FACTOR
        speed = round(speed, 2)
        level = next((name for below, name in _SPEEDS if speed < below), "Excellent")
        return speed, level

    def _mms(self) -> bool:
        device = self._device
        permissions = self._permissions("messaging")
        return bool(
            self._data_works()
            and device["network_technology_connected"] != "2G"
            and not (device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"])
            and device["active_apn_settings"]["mmsc_url"] is not None
            and permissions
            and permissions["storage"]
            and permissions["sms"]
        )

    def simulate_network_search(self) -> None:
        """Look for a network, and connect to the first that the preference tries and finds."""
        device, around = self._device, self._around
        found, signal = "none", "none"
        if self._sim() == "active" and not device["airplane_mode"]:
            apn_works = self._apn_name() != "broken"
            if apn_works and around["line_active"]:
                for network in _SEARCHED.get(device["network_mode_preference"], ()):
                    strength = around["signal_strength"].get(network, "none")
                    if strength != "none":
                        found, signal = network, strength
                        break
        self._set("network_technology_connected", found)
        self._set("network_signal_strength", signal)
        self._set("network_connection_status", "no_service" if found == "none" else "connected")

    def _apn_name(self) -> Any:
        settings = self._device["active_apn_settings"]
        if isinstance(settings, str):
            raise AttributeError("'str' object has no attribute 'apn_name'")  # noqa: TRY004 - upstream's
        return settings["apn_name"]

    def _set(self, key: str, value: Any) -> None:
        if self._device[key] != value:
            self._device[key] = value

    # What she can change.

    @tool(writes=True)
    def toggle_airplane_mode(self) -> str:
        device = self._device
        device["airplane_mode"] = not device["airplane_mode"]
        if device["airplane_mode"]:
            self._set("wifi_connected", False)
            self._drop_vpn()
        self.simulate_network_search()
        return self._with_bar(f"Airplane Mode is now {_on(device['airplane_mode'])}.")

    @tool(writes=True)
    def toggle_data(self) -> str:
        self._device["data_enabled"] = not self._device["data_enabled"]
        self.simulate_network_search()
        return self._with_bar(f"Mobile Data is now {_on(self._device['data_enabled'])}.")

    @tool(writes=True)
    def toggle_roaming(self) -> str:
        self._device["roaming_enabled"] = not self._device["roaming_enabled"]
        self.simulate_network_search()
        return self._with_bar(f"Data Roaming is now {_on(self._device['roaming_enabled'])}.")

    @tool(writes=True)
    def toggle_data_saver_mode(self) -> str:
        self._device["data_saver_mode"] = not self._device["data_saver_mode"]
        return self._with_bar(f"Data Saver Mode is now {_on(self._device['data_saver_mode'])}.")

    @tool(writes=True)
    def toggle_wifi(self) -> str:
        device = self._device
        if device["airplane_mode"]:
            return self._with_bar("Cannot change Wi-Fi settings while Airplane Mode is ON.")
        device["wifi_enabled"] = not device["wifi_enabled"]
        if not device["wifi_enabled"]:
            self._set("wifi_connected", False)
        return self._with_bar(f"Wi-Fi is now {_on(device['wifi_enabled'])}.")

    @tool(writes=True)
    def toggle_wifi_calling(self) -> str:
        device = self._device
        device["wifi_calling_enabled"] = not device["wifi_calling_enabled"]
        return self._with_bar(f"Wi-Fi Calling is now {_on(device['wifi_calling_enabled'])}.")

    @tool(writes=True)
    def set_network_mode_preference(self, mode: Any) -> str:
        if isinstance(mode, str) and mode not in _MODES:
            return self._with_bar(_no_mode(mode))
        self._device["network_mode_preference"] = mode
        if not isinstance(mode, str):
            return self._with_bar(_no_mode(mode))
        self.simulate_network_search()
        return self._with_bar(f"Preferred Network Mode set to: {mode}")

    @tool(writes=True)
    def reseat_sim_card(self) -> str:
        self._set("sim_card_missing", False)
        self.simulate_network_search()
        return self._with_bar("SIM card re-seated successfully.")

    @tool(writes=True)
    def set_apn_settings(self, apn_settings: Any) -> str:
        if isinstance(apn_settings, dict):
            apn_settings = _Apn(**apn_settings).model_dump()
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
        device["vpn_connected"] = True
        device["vpn_details"] = dict(_GOOD_VPN)
        return self._with_bar("VPN connected successfully.")

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
            self._device["active_apn_settings"] = _Apn().model_dump()
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

    # What tasks name to prepare her side, or to judge it.

    def set_user_info(self, name: str, phone_number: str) -> None:
        """Say whose phone it is."""
        self._around["name"] = name
        self._around["phone_number"] = phone_number

    def set_user_location(self, abroad: bool) -> None:
        """Say whether she is abroad."""
        self._around["is_abroad"] = abroad

    def turn_airplane_mode_on(self) -> None:
        """Turn airplane mode on."""
        if not self._device["airplane_mode"]:
            self.toggle_airplane_mode()

    def turn_airplane_mode_off(self) -> None:
        """Turn airplane mode off."""
        if self._device["airplane_mode"]:
            self.toggle_airplane_mode()

    def turn_data_on(self) -> None:
        """Turn mobile data on."""
        self._set("data_enabled", True)
        self.simulate_network_search()

    def turn_data_off(self) -> None:
        """Turn mobile data off."""
        self._set("data_enabled", False)
        self.simulate_network_search()

    def turn_roaming_on(self) -> None:
        """Turn roaming on."""
        self._set("roaming_enabled", True)
        self.simulate_network_search()

    def turn_roaming_off(self) -> None:
        """Turn roaming off."""
        self._set("roaming_enabled", False)
        self.simulate_network_search()

    def turn_data_saver_mode_on(self) -> None:
        """Turn the data saver on."""
        self._set("data_saver_mode", True)

    def turn_data_saver_mode_off(self) -> None:
        """Turn the data saver off."""
        self._set("data_saver_mode", False)

    def unseat_sim_card(self) -> None:
        """Take the SIM card out."""
        self._device["sim_card_missing"] = True
        self.simulate_network_search()

    def lock_sim_card(self, mode: str) -> None:
        """Lock the SIM card, with a `pin` or a `puk`."""
        self._device["sim_card_status"] = f"locked_{mode}"
        self.simulate_network_search()

    def break_apn_settings(self) -> None:
        """Make the access point a broken one."""
        self._device["active_apn_settings"]["apn_name"] = "broken"
        self.simulate_network_search()

    def break_apn_mms_setting(self) -> None:
        """Forget where picture messages go."""
        self._device["active_apn_settings"]["mmsc_url"] = None

    def break_vpn(self) -> None:
        """Connect to a poor VPN."""
        self._device["vpn_connected"] = True
        self._device["vpn_details"] = {**_GOOD_VPN, "server_performance": "poor"}

    def remove_app_permission(self, app_name: str, permission: str) -> None:
        """Take a permission from an app."""
        self._permissions(app_name)[permission] = False

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> None:
        """Turn Wi-Fi calling on or off, and picture messages over it."""
        self._set("wifi_calling_enabled", enabled)
        if mms_over_wifi is not None:
            self._set("wifi_calling_mms_over_wifi", mms_over_wifi)

    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        """Whether airplane mode is on, or off."""
        return bool(self._device["airplane_mode"] == expected_status)

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        """Whether mobile data works, or not."""
        return self._data_works() == expected_status

    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        """Whether roaming is on, or off."""
        return bool(self._device["roaming_enabled"] == expected_status)

    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        """Whether the data saver is on, or off."""
        return bool(self._device["data_saver_mode"] == expected_status)

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        """Whether all data is used."""
        return bool(self._around["mobile_data_usage_exceeded"] == expected_status)

    def assert_service_status(self, expected_status: str) -> bool:
        """Whether the phone is connected, or has no service."""
        return bool(self._device["network_connection_status"] == expected_status)

    def assert_internet_speed(
        self, expected_speed: float, expected_desc: str | None = None
    ) -> bool:
        """Whether the internet is at least so fast, and is called so."""
        speed, level = self._speed()
        if speed is None:
            return False
        if expected_desc is not None and level.lower() != expected_desc.lower():
            return False
        return speed >= expected_speed

    def assert_internet_not_excellent(self) -> bool:
        """Whether the internet is less than excellent."""
        return self._speed()[1] != "Excellent"

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        """Whether picture messages can be sent."""
        return self._mms() == expected_status


def _on(value: Any) -> str:
    return "ON" if value else "OFF"


def _yes(value: Any) -> str:
    return "Yes" if value else "No"


def _no_mode(mode: Any) -> str:
    return (
        f"Failed to set network mode: '{mode}' is not a valid option. "
        f"Please use one of: {', '.join(_MODES)}"
    )


_DEVICE = (
    *("sim_card_status", "sim_card_missing", "airplane_mode", "network_signal_strength"),
    *("network_technology_connected", "network_connection_status", "battery_level"),
    *("data_enabled", "roaming_enabled", "network_mode_preference", "active_apn_settings"),
    *("wifi_enabled", "wifi_connected", "wifi_ssid", "wifi_signal_strength"),
    *("wifi_calling_enabled", "wifi_calling_mms_over_wifi", "data_saver_mode"),
    *("vpn_enabled_setting", "vpn_connected", "vpn_details", "app_statuses"),
)


def user_database(db: Any) -> dict[str, Any]:
    """Her database as tau2's models hold it, with surroundings as they are before any task.

    Args:
        db: The published `user_db.toml`.
    """
    device = {key: db["device"].get(key) for key in _DEVICE}
    device["active_apn_settings"] = _Apn(**device["active_apn_settings"]).model_dump()
    return {
        "device": device,
        "surroundings": {
            "name": None,
            "phone_number": None,
            "is_abroad": False,
            "roaming_allowed": False,
            "signal_strength": {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
            "mobile_data_usage_exceeded": False,
            "line_active": True,
            "payment_request": None,
        },
    }
