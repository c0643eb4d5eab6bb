"""Upstream databases as worlds, read once; environments over forks of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from muarl.compat.conformance import UpstreamData
from muarl.compat.tau import airline, mock, phone, retail, telecom
from muarl.compat.tau.airline import Tau1Airline, Tau2Airline
from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.retail import Tau1Retail, Tau2Retail
from muarl.compat.tau.toolkit import Toolkit
from muarl.world import World

_TAU1: dict[str, tuple[type[Toolkit], tuple[str, ...]]] = {
    "retail": (Tau1Retail, ("orders", "products", "users")),
    "airline": (Tau1Airline, ("flights", "reservations", "users")),
}


class _Domain(msgspec.Struct, frozen=True):
    """A domain of tau2-bench: its tools, and the files of its databases."""

    agent: type[Toolkit]
    database: Callable[[UpstreamData], Any]
    user: type[Toolkit] | None = None
    user_database: Callable[[UpstreamData], Any] | None = None
    environment: type[Tau2Environment] = Tau2Environment


_TAU2 = {
    "retail": _Domain(
        Tau2Retail, lambda data: retail.tau2_database(data.json("tau2/domains/retail/db.json"))
    ),
    "airline": _Domain(
        Tau2Airline, lambda data: airline.tau2_database(data.json("tau2/domains/airline/db.json"))
    ),
    "mock": _Domain(
        mock.MockAgent,
        lambda data: data.json("tau2/domains/mock/db.json"),
        mock.MockUser,
        lambda data: data.json("tau2/domains/mock/user_db.json"),
    ),
    "telecom": _Domain(
        telecom.TelecomAgent,
        lambda data: telecom.agent_database(data.toml("tau2/domains/telecom/db.toml")),
        phone.TelecomUser,
        lambda data: phone.user_database(data.toml("tau2/domains/telecom/user_db.toml")),
        telecom.TelecomEnvironment,
    ),
}


def tau1_tools(data: UpstreamData, domain: str) -> Toolkit:
    """The tools of a domain of tau-bench, over a fork of its database."""
    return _TAU1[domain][0](_tau1_world(data, domain).fork())


def tau2_environment(data: UpstreamData, domain: str) -> Tau2Environment:
    """A domain of tau2-bench before any task, over forks of its databases."""
    made, agent, user = _TAU2[domain], *_tau2_worlds(data, domain)
    hers = None if made.user is None or user is None else made.user(user.fork())
    return made.environment(made.agent(agent.fork()), hers)


@cache
def tau2_tasks(data: UpstreamData, domain: str) -> dict[str, Task]:
    """The published tasks of a domain, by id."""
    return {task["id"]: task for task in data.json(f"tau2/domains/{domain}/tasks.json")}


@cache
def _tau1_world(data: UpstreamData, domain: str) -> World:
    files = _TAU1[domain][1]
    return World({name: data.json(f"tau1/{domain}/{name}.json") for name in files})


@cache
def _tau2_worlds(data: UpstreamData, domain: str) -> tuple[World, World | None]:
    made = _TAU2[domain]
    user = None if made.user_database is None else World(made.user_database(data))
    return World(made.database(data)), user
