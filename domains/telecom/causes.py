"""What can be wrong, what it is behind, and how it is mended; and what must not be mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SERVICE, DATA, PICTURES = "no_service", "no_data", "no_pictures"
TROUBLES = (SERVICE, DATA, PICTURES)
"""What a user can complain of."""
WORKS: Mapping[str, tuple[str, Any]] = {
    SERVICE: ("calls", True),
    DATA: ("data", "fast"),
    PICTURES: ("pictures", True),
}
"""What then has to be so: a key of `device.works`, and its value."""


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong.

    Attributes:
        behind: Troubles that it causes.
        setting: What it is about; no two causes of a task are about the same.
        phone: How the phone differs.
        line: How the line differs.
        place: Where the user must be for it to matter, or "".
        mends: Calls of the user's that mend what is wrong on the phone.
        mended: Path of what is then right, and its value.
    """

    behind: tuple[str, ...]
    setting: str
    phone: Mapping[str, Any] = field(default_factory=dict)
    line: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    mends: tuple[tuple[str, Mapping[str, str]], ...] = ()
    mended: tuple[str, Any] = ("", None)


def _setting(
    behind: tuple[str, ...],
    key: str,
    wrong: str,
    right: str,
    tool: str,
    arguments: Mapping[str, str] | None = None,
    place: str = "",
) -> Cause:
    """A setting of the phone that is wrong, and the call that mends it."""
    mends = ((tool, arguments or {}),)
    return Cause(behind, key, {key: wrong}, {}, place, mends, (f"device.{key}", right))


def _switch(behind: tuple[str, ...], key: str, right: str, place: str = "") -> Cause:
    wrong = "on" if right == "off" else "off"
    return _setting(behind, key, wrong, right, f"set_{key}", {"to": right}, place)


_NET = (DATA, PICTURES)
_OUT = {"status": "suspended"}
_UNREGISTERED = {"registered": False}
_RESTART = (("restart", {}),)

CAUSES: Mapping[str, Cause] = {
    "airplane": _switch(TROUBLES, "airplane_mode", "off"),
    "sim_out": _setting(TROUBLES, "sim", "out", "ready", "reseat_sim"),
    "sim_locked": _setting(TROUBLES, "sim", "locked", "ready", "enter_pin", {"pin": "{pin}"}),
    "suspended": Cause(
        TROUBLES, "status", _UNREGISTERED, _OUT, "", _RESTART, ("device.registered", True)
    ),
    "overdue": Cause(
        TROUBLES, "status", _UNREGISTERED, _OUT, "", _RESTART, ("device.registered", True)
    ),
    "line_roaming": Cause(
        TROUBLES, "roaming", {}, {"roaming": "off"}, "abroad", (), ("device.carrier.roaming", "on")
    ),
    "data_off": _switch(_NET, "mobile_data", "on"),
    "data_roaming": _switch(_NET, "data_roaming", "on", "abroad"),
    "used_up": Cause(_NET, "gb_left", {}, {"gb_left": 0}),
    "old_access_point": _setting(_NET, "access_point", "old", "carrier", "reset_access_point"),
    "saver": _switch((DATA,), "data_saver", "off"),
    "slow_network": _setting(
        (DATA,), "network_mode", "3g only", "automatic", "set_network_mode", {"to": "automatic"}
    ),
    "slowest_network": _setting(
        _NET, "network_mode", "2g only", "automatic", "set_network_mode", {"to": "automatic"}
    ),
    "far_vpn": _setting((DATA,), "vpn", "far", "off", "disconnect_vpn"),
    "no_picture_address": _setting(
        (PICTURES,), "access_point", "without pictures", "carrier", "reset_access_point"
    ),
    "wifi_calling": _switch((PICTURES,), "wifi_calling", "off"),
    "no_storage": _setting(
        (PICTURES,), "storage", "denied", "allowed", "allow", {"permission": "storage"}
    ),
    "no_sms": _setting((PICTURES,), "sms", "denied", "allowed", "allow", {"permission": "sms"}),
}

HARMLESS: Mapping[str, tuple[tuple[str, str], ...]] = {
    SERVICE: (
        ("mobile_data", "off"),
        ("data_roaming", "off"),
        ("data_saver", "on"),
        ("network_mode", "3g only"),
        ("access_point", "old"),
        ("access_point", "without pictures"),
        ("wifi_calling", "on"),
        ("vpn", "far"),
        ("storage", "denied"),
    ),
    DATA: (
        ("network_mode", "4g only"),
        ("access_point", "without pictures"),
        ("wifi_calling", "on"),
        ("vpn", "near"),
        ("storage", "denied"),
        ("sms", "denied"),
    ),
    PICTURES: (
        ("data_saver", "on"),
        ("network_mode", "3g only"),
        ("network_mode", "4g only"),
        ("vpn", "near"),
        ("vpn", "far"),
    ),
}
"""Settings of the phone that look wrong and cause no such trouble: to be left as they are. At home,
`data_roaming` off is one more."""


@dataclass(frozen=True)
class Obstacle:
    """Why nothing may be changed.

    Attributes:
        behind: Troubles in which it counts.
        setting: What it is about, as of a cause.
        phone: How the phone differs.
        line: How the line differs.
        place: Where the user must be for it to matter, or "".
        plan_roams: Whether her plan does, where it matters: yes or no.
        contract_over: The contract of her line has ended.
        too_much: She wants more data than her plan allows.
    """

    behind: tuple[str, ...]
    setting: str
    phone: Mapping[str, Any] = field(default_factory=dict)
    line: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    plan_roams: str = "yes"
    contract_over: bool = False
    too_much: bool = False


OBSTACLES: Mapping[str, Obstacle] = {
    "contract_ended": Obstacle(TROUBLES, "status", _UNREGISTERED, _OUT, contract_over=True),
    "stolen": Obstacle(TROUBLES, "status", _UNREGISTERED, {**_OUT, "note": "reported stolen"}),
    "sim_blocked": Obstacle(TROUBLES, "sim", {"sim": "blocked", "pin_tries": 0}),
    "plan_without_roaming": Obstacle(
        TROUBLES, "roaming", {}, {"roaming": "off"}, "abroad", plan_roams="no"
    ),
    "too_much_data": Obstacle(_NET, "gb_left", {}, {"gb_left": 0}, too_much=True),
}
