"""Recorded calls and trajectories of both generations, beside ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from muarl.compat.conformance import Kind, Record, UpstreamData, Vector
from muarl.compat.strictness import strict_diff
from muarl.compat.tau.airline import Tau1Airline, Tau2Airline
from muarl.compat.tau.databases import tau1_world, tau2_world
from muarl.compat.tau.hashing import TAU1, TAU2, DatabaseHash
from muarl.compat.tau.retail import Tau1Retail, Tau2Retail
from muarl.compat.tau.toolkit import Tau2Environment, Toolkit
from muarl.world import World

_SHOWN = 300

_TAU1: dict[str, type[Toolkit]] = {"retail": Tau1Retail, "airline": Tau1Airline}
_TAU2: dict[str, type[Toolkit]] = {"retail": Tau2Retail, "airline": Tau2Airline}


def tau1(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Gold calls of a task of tau-bench, and the final state."""
    world = tau1_world(data, record["domain"]).fork()
    name = f"tau1 {record['domain']} {record['split']}"
    kit = _TAU1[record["domain"]](world)
    yield from _calls("gold", name, record["task_id"], _as_published(record, data), kit, world)
    yield _final(name, record, _hash(TAU1, record["domain"]).of(world))


def _as_published(record: Record, data: UpstreamData) -> list[Record]:
    """Gold calls with their arguments in the order of the published task, which answers repeat.

    Records have their keys sorted.
    """
    tasks = data.json(f"tau1/{record['domain']}_tasks_{record['split']}.json")
    published = tasks[int(record["task_id"].rpartition("-")[2])]["actions"]
    return [
        {**step, "args": action["kwargs"] if action["kwargs"] == step["args"] else step["args"]}
        for step, action in zip(record["actions"], published, strict=True)
    ]


def tau1_fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls on tau-bench."""
    world = tau1_world(data, record["domain"]).fork()
    kit = _TAU1[record["domain"]](world)
    name = f"tau1 {record['domain']}"
    yield from _calls("fuzz", name, record["episode"], record["steps"], kit, world)


def tau2(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Gold calls of a task of tau2-bench, or a trajectory and its official reward."""
    if record.get("kind") == "evaluator_vector":
        return
    world = tau2_world(data, record["domain"]).fork()
    name = f"tau2 {record['domain']}"
    env = _tau2(record["domain"], world)
    yield from _calls("gold", name, record["task_id"], record["actions"], env, world)
    yield _final(name, record, _hash(TAU2, record["domain"]).of(world))


def tau2_fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls on tau2-bench."""
    world = tau2_world(data, record["domain"]).fork()
    env = _tau2(record["domain"], world)
    name = f"tau2 {record['domain']}"
    yield from _calls("fuzz", name, record["episode"], record["steps"], env, world)


def _tau2(domain: str, world: World) -> Tau2Environment:
    return Tau2Environment(_TAU2[domain](world))


def _calls(
    kind: Kind,
    set_name: str,
    task: str,
    steps: list[Record],
    tools: Toolkit | Tau2Environment,
    world: World,
) -> Iterator[Vector]:
    for number, step in enumerate(steps):
        before = world.fork()
        if isinstance(tools, Tau2Environment):
            answer = tools.call(step["name"], step["args"], step["requestor"])
        else:
            answer = tools.call(step["name"], step["args"])
        wrong = []
        if answer.is_error != step["error"]:
            wrong.append(f"error {answer.is_error}, official {step['error']}")
        if not answer.by_python and answer.text != step["output"]:
            wrong.append(f"says {answer.text[:_SHOWN]!r}, official {step['output'][:_SHOWN]!r}")
        ours, theirs = _items(strict_diff(before, world)), _items(step["diff"])
        if ours != theirs:
            wrong.append(f"changes {_cut(ours - theirs)}, official {_cut(theirs - ours)}")
        name = f"{task} call {number} {step['name']}"
        yield Vector(kind, set_name, name, "; ".join(wrong), calls=1)


def _final(set_name: str, record: Record, ours: str) -> Vector:
    wrong = "" if ours == record["final_db_hash"] else "the final database has another hash"
    return Vector("gold", set_name, f"{record['task_id']} final state", wrong)


@cache
def _hash(kind: type[DatabaseHash], domain: str) -> DatabaseHash:
    return kind()


def _items(changes: list[Record]) -> set[str]:
    return {json.dumps(change, sort_keys=True) for change in changes}


def _cut(items: set[str]) -> str:
    return ", ".join(sorted(items))[:_SHOWN]
