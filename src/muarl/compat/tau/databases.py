"""Upstream databases as worlds, read once; environments over forks of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from muarl.compat.conformance import UpstreamData
from muarl.compat.tau import airline_tau2, mock, phone_tasks, retail_tau2, telecom
from muarl.compat.tau.airline_tau1 import Tau1Airline
from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.retail_tau1 import Tau1Retail
from muarl.compat.tau.toolkit import Toolkit
from muarl.world import World

_TAU1: dict[str, type[Toolkit]] = {"retail": Tau1Retail, "airline": Tau1Airline}
TAU1_TABLES = {
    "retail": ("orders", "products", "users"),
    "airline": ("flights", "reservations", "users"),
}
"""The tables of tau-bench's databases, a file each."""


class Tau2Domain(msgspec.Struct, frozen=True):
    """A domain of tau2-bench: its tools, and its databases as tau2's models hold them.

    Attributes:
        agent: The agent's tools.
        files: The published databases: the agent's, then the user's if she has one.
        database: The agent's, of what its file holds.
        user: The user's tools.
        user_database: Hers, of what its file holds.
        environment: Joins both sides.
    """

    agent: type[Toolkit]
    files: tuple[str, ...]
    database: Callable[[Any], Any]
    user: type[Toolkit] | None = None
    user_database: Callable[[Any], Any] | None = None
    environment: type[Tau2Environment] = Tau2Environment

    def over(self, agent: Any, user: Any) -> Tau2Environment:
        """Both sides over their databases; None where the user has none."""
        hers = None if self.user is None or user is None else self.user(user)
        return self.environment(self.agent(agent), hers)


def _as_it_is(db: Any) -> Any:
    return db


_TAU2 = {
    "retail": Tau2Domain(retail_tau2.Tau2Retail, ("db.json",), retail_tau2.tau2_database),
    "airline": Tau2Domain(airline_tau2.Tau2Airline, ("db.json",), airline_tau2.tau2_database),
    "mock": Tau2Domain(
        mock.MockAgent, ("db.json", "user_db.json"), _as_it_is, mock.MockUser, _as_it_is
    ),
    "telecom": Tau2Domain(
        telecom.TelecomAgent,
        ("db.toml", "user_db.toml"),
        telecom.agent_database,
        phone_tasks.TelecomUser,
        phone_tasks.user_database,
        telecom.TelecomEnvironment,
    ),
}


def tau1_kit(domain: str) -> type[Toolkit]:
    """The tools of a domain of tau-bench."""
    return _TAU1[domain]


def tau2_made(domain: str) -> Tau2Domain:
    """A domain of tau2-bench."""
    return _TAU2[domain]


def tau1_tools(data: UpstreamData, domain: str) -> Toolkit:
    """The tools of a domain of tau-bench, over a fork of its database."""
    return _TAU1[domain](_tau1_world(data, domain).fork())


def tau2_environment(data: UpstreamData, domain: str) -> Tau2Environment:
    """A domain of tau2-bench before any task, over forks of its databases."""
    agent, user = _tau2_worlds(data, domain)
    return _TAU2[domain].over(agent.fork(), None if user is None else user.fork())


@cache
def tau2_tasks(data: UpstreamData, domain: str) -> dict[str, Task]:
    """The published tasks of a domain, by id."""
    return {task["id"]: task for task in data.json(f"tau2/domains/{domain}/tasks.json")}


@cache
def _tau1_world(data: UpstreamData, domain: str) -> World:
    tables = TAU1_TABLES[domain]
    return World({name: data.json(f"tau1/{domain}/{name}.json") for name in tables})


@cache
def _tau2_worlds(data: UpstreamData, domain: str) -> tuple[World, World | None]:
    made = _TAU2[domain]
    read = [
        (data.toml if name.endswith(".toml") else data.json)(f"tau2/domains/{domain}/{name}")
        for name in made.files
    ]
    user = None if made.user_database is None else World(made.user_database(read[1]))
    return World(made.database(read[0])), user
