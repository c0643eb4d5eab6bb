"""Upstream databases as worlds: read once, forked for every replay."""

from __future__ import annotations

from functools import cache
from typing import Any

from muarl.compat.conformance import UpstreamData
from muarl.compat.tau import airline, retail
from muarl.world import World

_TAU1_FILES = {
    "retail": ("orders", "products", "users"),
    "airline": ("flights", "reservations", "users"),
}


@cache
def tau1_world(data: UpstreamData, domain: str) -> World:
    """The database of a domain of tau-bench."""
    return World({name: data.json(f"tau1/{domain}/{name}.json") for name in _TAU1_FILES[domain]})


@cache
def tau2_world(data: UpstreamData, domain: str) -> World:
    """The database of a domain of tau2-bench, as its models hold it."""
    return World(_TAU2[domain](data))


def _retail(data: UpstreamData) -> dict[str, Any]:
    return retail.tau2_database(data.json("tau2/domains/retail/db.json"))


def _airline(data: UpstreamData) -> dict[str, Any]:
    return airline.tau2_database(data.json("tau2/domains/airline/db.json"))


_TAU2 = {"retail": _retail, "airline": _airline}
