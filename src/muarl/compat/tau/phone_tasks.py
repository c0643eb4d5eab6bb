"""The user's side of telecom as tasks know it: prepared, judged, and before any task."""

from __future__ import annotations

from typing import Any

from muarl.compat.tau.phone_changes import BROKEN_VPN, Apn, PhoneChanges


class TelecomUser(PhoneChanges):
    """The user's thirty tools, and what tasks name to prepare her side or to judge it."""

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
        """Connect to a poor VPN; there is no other from then on."""
        self.db[BROKEN_VPN] = True
        self._connect_vpn()

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
    device["active_apn_settings"] = Apn(**device["active_apn_settings"]).model_dump()
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
