"""Recorded milestones, repaired solutions and random calls, beside ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from muarl.compat.acebench.entries import Entry, entries, first_records
from muarl.compat.acebench.environment import Environment
from muarl.compat.acebench.initial import initial_world
from muarl.compat.acebench.score import end_to_end, saved
from muarl.compat.conformance import Kind, Record, UpstreamData, Vector
from muarl.compat.python_calls import NotCalls
from muarl.compat.strictness import strict_diff
from muarl.world import World, plain

_SHOWN = 300


def milestones(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Every call of a published or repaired solution, the final state, and its verdict."""
    entry = entries(data.folder / "acebench", record["lang"], record["kind"])[record["task_id"]]
    at = f"{record['task_id']} {record.get('alternative', 'repaired')}"
    world = _world(record, data)
    first = world.fork()
    yield from _calls("gold", record, world, at)
    ours = {
        "final_state": plain(world),
        "final_diff": _sorted(strict_diff(first, world)),
        "saved_result": saved(world),
    }
    theirs = {key: record[key] for key in ours} | {"final_diff": _sorted(record["final_diff"])}
    yield _vector("gold", record, f"{at} final state", ours, theirs)
    yield _verdict(record, entry, world, at)


def fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls, and the state they lead to."""
    world = _world(record, data)
    yield from _calls("fuzz", record, world, record["episode"])
    text = json.dumps(plain(world), sort_keys=True)
    ours = {"final_state_sha256": hashlib.sha256(text.encode()).hexdigest()}
    theirs = {key: record[key] for key in ours}
    yield _vector("fuzz", record, f"{record['episode']} final state", ours, theirs)


def _world(record: Record, data: UpstreamData) -> World:
    records = first_records(data.folder / "acebench", record["lang"])
    return initial_world(
        record["involved_classes"], record["initial_config"], record["lang"], records
    )


def _calls(kind: Kind, record: Record, world: World, at: str) -> Iterator[Vector]:
    yield _vector(kind, record, f"{at} initial state", plain(world), record["initial_state"])
    involved = record["involved_classes"]
    environment = Environment(world, involved, record["lang"], record["kind"])
    for number, step in enumerate(record["steps"]):
        before = world.fork()
        ours = _answered(environment, step["call"]) | {"diff": _sorted(strict_diff(before, world))}
        theirs = {
            "output": step["output"],
            "instances_returned": step.get("instances_returned", False),
            "raised": "raised" in step,
            "diff": _sorted(step["diff"]),
        }
        yield _vector(kind, record, f"{at} call {number} {step['call']}", ours, theirs, calls=1)


def _answered(environment: Environment, text: str) -> Record:
    try:
        answer = environment.respond(text)
    except NotCalls:  # the text of what upstream raises is the interpreter's
        return {"output": None, "instances_returned": False, "raised": True}
    return {"output": answer.message, "instances_returned": answer.ran, "raised": False}


def _verdict(record: Record, entry: Entry, world: World, at: str) -> Vector:
    verdict = end_to_end(saved(world), entry.gold)
    errors: list[str] = []
    for check in verdict.checks:
        if not check.compared:
            names = set(check.classes)
            errors.append(f"no class {names} in result (official code does not fail this)")
        errors += check.errors
    ours = {"end_to_end_valid": verdict.valid, "errors": errors}
    return _vector("evaluator", record, f"{at} verdict", ours, {key: record[key] for key in ours})


def _vector(
    kind: Kind, record: Record, name: str, ours: Any, theirs: Any, *, calls: int = 0
) -> Vector:
    differences = strict_diff(ours, theirs)
    wrong = "; ".join(
        f"{item['path']} {item.get('old')!r}, official {item.get('new')!r}"[:_SHOWN]
        for item in differences
    )
    set_name = f"acebench {record['lang']} {record['kind']}"
    return Vector(kind, set_name, name, wrong, calls=calls)


def _sorted(items: list[Record]) -> list[Record]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
