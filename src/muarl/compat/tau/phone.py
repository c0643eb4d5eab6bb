"""The user's side of telecom: her phone, and what surrounds it.

What the phone shows of the network follows from a search of it, which upstream repeats when something
that matters was touched; in between it may show what is no longer so.
"""

from __future__ import annotations

from typing import Any

from muarl.compat.tau.toolkit import Tau2Toolkit, tool

_SEARCHED = {
    "4g_5g_preferred": ("5G", "4G"),
    "4g_only": ("4G",),
    "3g_only": ("3G",),
    "2g_only": ("2G",),
}
"""Which networks each preference tries, in this order; it stays with the last."""
_ELSE = ("4G",)
"""What any other preference tries."""

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


class PhoneShows(Tau2Toolkit):
    """What she can look at, and what it follows from."""

    @property
    def _device(self) -> Any:
        return self.db["device"]

    @property
    def _around(self) -> Any:
        return self.db["surroundings"]

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
            f"Airplane Mode: {on_or_off(device['airplane_mode'])}",
            f"SIM Card Status: {self._sim()}",
            f"Cellular Connection: {device['network_connection_status']}",
            f"Cellular Signal: {device['network_signal_strength']}",
            f"Cellular Network Type: {device['network_technology_connected']}",
            f"Mobile Data Enabled: {_yes(device['data_enabled'])}",
            f"Data Roaming Enabled: {_yes(device['roaming_enabled'])}",
            f"Wi-Fi Radio: {on_or_off(device['wifi_enabled'])}",
            f"Wi-Fi Connected: {_yes(device['wifi_connected'])}",
        ]
        if device["wifi_connected"]:
            lines.append(f"Connected Wi-Fi Network: {device['wifi_ssid']}")
        return "\n".join(lines)

    @tool()
    def check_network_mode_preference(self) -> str:
        return f"Network Mode Preference: {self._mode()}"

    def _mode(self) -> str:
        mode = self._device["network_mode_preference"]
        if not isinstance(mode, str):  # written as it came; upstream reads it as an enumeration's
            raise AttributeError(f"{type(mode).__name__!r} object has no attribute 'value'")  # noqa: TRY004 - upstream's
        return mode

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
        return (
            f"Wi-Fi Calling is currently turned {on_or_off(self._device['wifi_calling_enabled'])}."
        )

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
        if self._sim() == "active" and not device["airplane_mode"] and around["line_active"]:
            mode = device["network_mode_preference"]
            for found in _SEARCHED.get(mode, _ELSE) if isinstance(mode, str) else _ELSE:
                signal = around["signal_strength"].get(found, "none")
                if signal != "none":
                    break
        self._connect(found, signal)
        if self._apn_name() == "broken":  # looked at last: what is no settings raises here
            self._connect("none", "none")

    def _connect(self, network: str, signal: str) -> None:
        self._set("network_technology_connected", network)
        self._set("network_signal_strength", signal)
        self._set("network_connection_status", "no_service" if network == "none" else "connected")

    def _apn_name(self) -> Any:
        settings = self._device["active_apn_settings"]
        if isinstance(settings, str):
            raise AttributeError("'str' object has no attribute 'apn_name'")  # noqa: TRY004 - upstream's
        return settings["apn_name"]

    def _set(self, key: str, value: Any) -> None:
        if self._device[key] != value:
            self._device[key] = value


def on_or_off(value: Any) -> str:
    """How the phone words a switch."""
    return "ON" if value else "OFF"


def _yes(value: Any) -> str:
    return "Yes" if value else "No"
