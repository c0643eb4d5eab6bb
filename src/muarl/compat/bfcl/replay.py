"""Recorded calls and verdicts of both versions, beside ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from muarl.compat.bfcl.checker import judged
from muarl.compat.bfcl.files import GorillaFileSystem
from muarl.compat.bfcl.message import MessageAPI
from muarl.compat.bfcl.sandbox import Sandbox, initial_state
from muarl.compat.bfcl.toolkit import Answer, Api, Version, python_key
from muarl.compat.bfcl.upstream import Upstream
from muarl.compat.conformance import Record, UpstreamData, Vector
from muarl.compat.strictness import strict_diff
from muarl.world import World

_SHOWN = 300
_KEYED = ("user_map", "tweets", "comments", "orders")
"""Dicts whose keys are written for Python's, see `toolkit.key_of`."""


def turns(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Gold calls of an entry, turn by turn, or calls of a model and what the checker says of them."""
    version = _version(record)
    if record.get("kind") == "evaluator_vector":
        yield _verdict(record, data, version)
        return
    sandbox = _sandbox(data, version, record)
    name = f"bfcl {version} {record['category']}"
    yield _state("gold", name, f"{record['task_id']} initial state", sandbox, record, "initial")
    for number, turn in enumerate(record["turns"]):
        before = _serialised(sandbox)
        for at, call in enumerate(turn["calls"]):
            wrong = _said_otherwise(sandbox.call(call["call"]), call)
            if at == len(turn["calls"]) - 1:
                wrong += _changed_otherwise(before, _serialised(sandbox), turn["diff"])
            place = f"{record['task_id']} turn {number} {call['call'][:_SHOWN]}"
            yield Vector("gold", name, place, "; ".join(wrong), calls=1)
    yield _state("gold", name, f"{record['task_id']} final state", sandbox, record, "final")


def fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls of one class."""
    version = _version(record)
    of = record["class"]
    entry = {**record, "involved_classes": [of], "initial_config": {of: record["initial_config"]}}
    sandbox = _sandbox(data, version, entry)
    for number, step in enumerate(record["steps"]):
        before = _serialised(sandbox)
        wrong = _said_otherwise(sandbox.call(step["call"]), step)
        wrong += _changed_otherwise(before, _serialised(sandbox), {of: step["diff"]})
        place = f"{record['episode']} call {number} {step['call'][:_SHOWN]}"
        yield Vector("fuzz", f"bfcl {version} {of}", place, "; ".join(wrong), calls=1)


def _verdict(record: Record, data: UpstreamData, version: Version) -> Vector:
    entry, gold = _published(data, version, record["category"])[record["task_id"]]
    entry = {**entry, "long_context": "long_context" in record["category"]}
    verdict = judged(record["model_calls"], gold, lambda: _sandbox(data, version, entry))
    ours = (verdict.valid, verdict.error, not verdict.acted_without_need)
    theirs = (record["valid"], record["error_type"], record["irrelevance_valid"])
    name = f"bfcl {version} {record['category']}"
    place = f"{record['task_id']} {record['variant']}"
    calls = sum(len(step) for steps in record["model_calls"] for step in steps)
    wrong = "" if ours == theirs else f"says {ours}, official {theirs}"
    return Vector("evaluator", name, place, wrong, calls=calls)


@cache
def _published(data: UpstreamData, version: Version, category: str) -> dict[str, Any]:
    """Entries of a category with their gold calls, by id."""
    file = f"BFCL_{version}_{category}.json"
    entries = data.json_lines(f"bfcl/{version}/{file}")
    answers = data.json_lines(f"bfcl/{version}/possible_answer/{file}")
    gold = {answer["id"]: answer["ground_truth"] for answer in answers}
    return {entry["id"]: (entry, gold[entry["id"]]) for entry in entries}


def _version(record: Record) -> Version:
    return "v3" if record["benchmark"].startswith("bfcl_v3") else "v4"


@cache
def _upstream(data: UpstreamData, version: Version) -> Upstream:
    return Upstream(data, f"bfcl/{version}")


def _sandbox(data: UpstreamData, version: Version, entry: Mapping[str, Any]) -> Sandbox:
    upstream = _upstream(data, version)
    classes, config = entry["involved_classes"], _as_published(data, version, entry)
    state = initial_state(classes, config, upstream, long=entry["long_context"])
    return Sandbox(World(state), upstream, version)


def _as_published(data: UpstreamData, version: Version, entry: Mapping[str, Any]) -> Any:
    """An entry's configuration with its keys in their order, which answers repeat.

    Records have their keys sorted.
    """
    config = entry["initial_config"]
    task = str(entry.get("from_entry") or entry.get("task_id", ""))
    category = task.rpartition("_")[0]
    if not category:
        return config
    published = _published(data, version, category)[task][0]["initial_config"]
    return {name: _like(published.get(name), of) for name, of in config.items()}


def _like(published: Any, recorded: Any) -> Any:
    return published if published == recorded else recorded


def _serialised(sandbox: Sandbox) -> dict[str, Any]:
    """States as the records write them."""
    return {name: _of(instance) for name, instance in sandbox.instances.items()}


def _of(instance: Api) -> dict[str, Any]:
    state = instance.public()
    for key in _KEYED:
        if key in state:
            state[key] = {str(python_key(name)): value for name, value in state[key].items()}
    if isinstance(instance, GorillaFileSystem):
        state["__cwd__"] = instance.path()
    if isinstance(instance, MessageAPI):
        state["generated_ids"] = str(set(instance.state["generated_ids"]))
    return state


def _state(
    kind: Any, set_name: str, place: str, sandbox: Sandbox, record: Record, when: str
) -> Vector:
    theirs, ours = record.get(f"{when}_state"), _serialised(sandbox)
    if (
        theirs is None
    ):  # of a long context only the difference is recorded, and checked with the calls
        return Vector(kind, set_name, place)
    wrong = _changed_otherwise(theirs, ours, {name: [] for name in ours})
    return Vector(kind, set_name, place, "; ".join(wrong))


def _said_otherwise(answer: Answer, step: Record) -> list[str]:
    wrong = []
    if answer.is_error != step["error"]:
        wrong.append(f"error {answer.is_error}, official {step['error']}")
    both_python = answer.by_python and step.get("crash", False)
    if answer.text != step["output"] and not both_python:
        wrong.append(f"says {answer.text[:_SHOWN]!r}, official {step['output'][:_SHOWN]!r}")
    return wrong


def _changed_otherwise(before: Any, after: Any, theirs: Mapping[str, Any]) -> list[str]:
    wrong = []
    for name in after:
        mine = {json.dumps(item, sort_keys=True) for item in strict_diff(before[name], after[name])}
        yours = {json.dumps(item, sort_keys=True) for item in theirs.get(name, ())}
        if mine != yours:
            wrong.append(f"changes {_cut(mine - yours)}, official {_cut(yours - mine)}")
    return wrong


def _cut(items: set[str]) -> str:
    return ", ".join(sorted(items))[:_SHOWN]
