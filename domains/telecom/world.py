"""The world before any task: five plans, four strangers, and a phone that nobody holds."""

from __future__ import annotations

import random
from typing import Any

from . import people
from .sync import what_works

LINES = (3, 2, 2, 2)
"""Of each stranger."""
BILLS = (2, 2, 1, 1)
SEED = 2026

PHONE: dict[str, Any] = {
    "line": "",
    "number": "",
    "place": "home",
    "airplane_mode": "off",
    "sim": "ready",
    "pin": "0000",
    "pin_tries": 3,
    "registered": True,
    "mobile_data": "on",
    "data_roaming": "on",
    "data_saver": "off",
    "network_mode": "automatic",
    "access_point": "carrier",
    "wifi_calling": "off",
    "vpn": "off",
    "storage": "allowed",
    "sms": "allowed",
    "payment_request": {},
    "carrier": {"status": "active", "roaming": "on", "gb_left": 1},
}
"""A phone that is as it should be. `place`: home or abroad; `sim`: ready, out, locked (a PIN unlocks
it) or blocked (nobody can); `access_point`: carrier, old, or without pictures; `vpn`: off, near, far."""


def build() -> dict[str, Any]:
    """What the carrier keeps: nine lines and six bills of strangers."""
    rng = random.Random(SEED)
    customers: dict[str, Any] = {}
    lines: dict[str, Any] = {}
    bills: dict[str, Any] = {}
    for line_count, bill_count in zip(LINES, BILLS, strict=True):
        customer = people.key(rng, "C")
        customers[customer] = people.person(rng)
        for model in rng.sample(people.PHONES, line_count):
            number = people.number(rng)
            lines[people.key(rng, "L")] = people.line(rng, customer, number, model)
        for _ in range(bill_count):
            bills[people.key(rng, "B")] = people.bill(rng, customer)
    return {"customers": customers, "lines": lines, "plans": people.PLANS, "bills": bills}


def phone() -> dict[str, Any]:
    """The phone before a task puts it into somebody's hand: a stranger's."""
    line, of_line = next(iter(build()["lines"].items()))
    carrier = {key: of_line[key] for key in ("status", "roaming", "gb_left")}
    held = PHONE | {"line": line, "number": of_line["number"], "carrier": carrier}
    return held | {"works": what_works(held)}
