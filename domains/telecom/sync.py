"""What follows from both sides together: payments, registration, and what works on the phone.

`domain.yaml` copies what the carrier decides into `device.carrier`; then this is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def settle(world: Any) -> None:
    """Bring payments and the phone in step; run again, it changes nothing."""
    phone = world["device"]
    _settle_payment(world["bills"], world["lines"][phone["line"]]["customer"], phone)
    if phone["registered"] and phone["carrier"]["status"] != "active":
        phone["registered"] = False
    for key, value in what_works(phone).items():
        if phone["works"][key] != value:
            phone["works"][key] = value


def _settle_payment(bills: Any, customer: str, phone: Any) -> None:
    """What she paid is paid; what is requested of her stands on her phone."""
    request = phone["payment_request"]
    if request and request["paid"]:
        bills[request["bill"]]["status"] = "paid"
        phone["payment_request"] = {}
    if not phone["payment_request"]:
        for key, bill in bills.items():
            if bill["customer"] == customer and bill["status"] == "requested":
                asked = {"bill": key, "amount": bill["amount"], "paid": False}
                phone["payment_request"] = asked
                break


def what_works(phone: Mapping[str, Any]) -> dict[str, Any]:
    """Calls, mobile data (none, slow or fast) and picture messages, on a phone as it is."""
    calls, internet = has_service(phone), has_internet(phone)
    return {
        "calls": calls,
        "data": ("fast" if is_fast(phone) else "slow") if internet else "none",
        "pictures": internet and sends_pictures(phone),
    }


def has_service(phone: Mapping[str, Any]) -> bool:
    """Whether calls can be made."""
    return bool(
        phone["airplane_mode"] == "off"
        and phone["sim"] == "ready"
        and phone["carrier"]["status"] == "active"
        and phone["registered"]
        and (phone["place"] == "home" or phone["carrier"]["roaming"] == "on")
    )


def has_internet(phone: Mapping[str, Any]) -> bool:
    """Whether mobile data works, however slowly."""
    return bool(
        has_service(phone)
        and phone["mobile_data"] == "on"
        and (phone["place"] == "home" or phone["data_roaming"] == "on")
        and phone["carrier"]["gb_left"] > 0
        and phone["access_point"] != "old"
    )


def is_fast(phone: Mapping[str, Any]) -> bool:
    """Whether nothing slows mobile data."""
    return bool(
        phone["data_saver"] == "off"
        and phone["network_mode"] in ("automatic", "4g only")
        and phone["vpn"] != "far"
    )


def sends_pictures(phone: Mapping[str, Any]) -> bool:
    """Whether the phone would send a picture message, given mobile data."""
    return bool(
        phone["access_point"] == "carrier"
        and phone["network_mode"] != "2g only"
        and phone["wifi_calling"] == "off"
        and phone["storage"] == "allowed"
        and phone["sms"] == "allowed"
    )
