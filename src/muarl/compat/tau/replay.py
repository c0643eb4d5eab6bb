"""Recorded calls and trajectories of both generations, beside ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from muarl.compat.conformance import Kind, Record, UpstreamData, Vector
from muarl.compat.strictness import strict_diff
from muarl.compat.tau.databases import tau1_tools, tau2_environment, tau2_tasks
from muarl.compat.tau.environment import Tau2Environment
from muarl.compat.tau.evaluator import judged, reward_of
from muarl.compat.tau.hashing import TAU1, TAU2, DatabaseHash
from muarl.compat.tau.toolkit import Answer, Toolkit

_SHOWN = 300
_DRAWN = re.compile(r"\bB[0-9a-f]{8}\b")


def tau1(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Gold calls of a task of tau-bench, and the final state."""
    kit = tau1_tools(data, record["domain"])
    name = f"tau1 {record['domain']} {record['split']}"
    for number, step in enumerate(_as_published(record, data)):
        yield _tau1_call("gold", name, f"{record['task_id']} call {number}", step, kit)
    final = _hash(TAU1, record["domain"]).of(kit.db)
    yield _final(name, record["task_id"], final, record["final_db_hash"])


def tau1_fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls on tau-bench."""
    kit = tau1_tools(data, record["domain"])
    for number, step in enumerate(record["steps"]):
        task = f"{record['episode']} call {number}"
        yield _tau1_call("fuzz", f"tau1 {record['domain']}", task, step, kit)


def tau2(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Gold calls of a task of tau2-bench, or a trajectory and what its evaluator says."""
    if record.get("kind") == "evaluator_vector":
        yield _trajectory(record, data)
        return
    env = tau2_environment(data, record["domain"])
    env.begin({"initial_state": record["initial_state"]})
    name = f"tau2 {record['domain']}"
    for number, step in enumerate(record["actions"]):
        yield _tau2_call("gold", name, f"{record['task_id']} call {number}", step, env)
    hashes = _hashes(record["domain"])
    task = f"{record['task_id']} final state"
    yield _final(name, task, hashes[0].of(env.agent.db), record["final_db_hash"])
    if env.user is not None:
        hers = hashes[1].of(env.user.db)
        yield _final(name, f"{task}, user's", hers, record["final_user_db_hash"])


def tau2_fuzz(record: Record, data: UpstreamData) -> Iterator[Vector]:
    """Random calls on tau2-bench."""
    env = tau2_environment(data, record["domain"])
    env.begin({"initial_state": record["initial_state"]})
    drawn = record["nondeterministic"]
    for number, step in enumerate(record["steps"]):
        task = f"{record['episode']} call {number}"
        yield _tau2_call("fuzz", f"tau2 {record['domain']}", task, step, env, drawn=drawn)


def _tau1_call(kind: Kind, set_name: str, task: str, step: Record, kit: Toolkit) -> Vector:
    before = kit.db.fork()
    wrong = _said_otherwise(kit.call(step["name"], step["args"]), step)
    wrong += _changed_otherwise("", strict_diff(before, kit.db), step["diff"])
    return Vector(kind, set_name, f"{task} {step['name']}", "; ".join(wrong), calls=1)


def _tau2_call(
    kind: Kind,
    set_name: str,
    task: str,
    step: Record,
    env: Tau2Environment,
    *,
    drawn: bool = False,
) -> Vector:
    before = env.agent.db.fork()
    hers = None if env.user is None else env.user.db.fork()
    answer = env.call(step["name"], step["args"], step["requestor"])
    changes = strict_diff(before, env.agent.db)
    if drawn:  # a bill's number is drawn upstream, and no seed is recorded
        step, changes = _without_drawn(step), _without_drawn(changes)
        answer = Answer(_DRAWN.sub("B*", answer.text), answer.is_error, answer.by_python)
    wrong = _said_otherwise(answer, step)
    wrong += _changed_otherwise("", changes, step["diff"])
    if env.user is not None:
        wrong += _changed_otherwise("user's ", strict_diff(hers, env.user.db), step["user_diff"])
    return Vector(kind, set_name, f"{task} {step['name']}", "; ".join(wrong), calls=1)


def _said_otherwise(answer: Answer, step: Record) -> list[str]:
    wrong = []
    if answer.is_error != step["error"]:
        wrong.append(f"error {answer.is_error}, official {step['error']}")
    # Python's own words about a wrong argument, or pydantic's, are nobody's semantics.
    theirs_by_python = step.get("exc_type") not in (None, "ValueError")
    own = answer.by_python and (theirs_by_python or "exc_type" not in step)
    if not own and answer.text != step["output"]:
        wrong.append(f"says {answer.text[:_SHOWN]!r}, official {step['output'][:_SHOWN]!r}")
    return wrong


def _changed_otherwise(whose: str, ours: list[Record], theirs: list[Record]) -> list[str]:
    mine, yours = _items(ours), _items(theirs)
    if mine == yours:
        return []
    return [f"{whose}changes {_cut(mine - yours)}, official {_cut(yours - mine)}"]


def _trajectory(record: Record, data: UpstreamData) -> Vector:
    task = tau2_tasks(data, record["domain"])[record["task_id"]]
    calls = [{**call, "arguments": call["args"]} for call in record["calls"]]
    fresh = partial(tau2_environment, data, record["domain"])
    name = f"{record['task_id']} {record['variant']}"
    ours: dict[str, Any]
    try:
        said = record["agent_messages"]
        verdict = judged(task, calls, said, fresh, _hashes(record["domain"]))
    except ValueError as error:
        ours = {"raised": f"{type(error).__mro__[1].__name__}: {error}"}
    else:
        ours = {"reward": reward_of(verdict, task, record["termination_reason"])}
        if record["components"]:
            ours["components"] = {
                **verdict.components(),
                "ENV_ASSERTION": list(verdict.assertions),
                "action_matches": list(verdict.actions),
                "communicate_matches": list(verdict.communicated),
            }
    theirs = _official(record)
    wrong = "" if ours == theirs else f"says {ours}, official {theirs}"
    return Vector("evaluator", f"tau2 {record['domain']}", name, wrong, calls=len(calls))


def _official(record: Record) -> dict[str, Any]:
    if record["evaluator_raised"]:
        return {"raised": record["evaluator_raised"]}
    official: dict[str, Any] = {"reward": record["reward_without_nl"]}
    if record["components"]:
        official["components"] = record["components"]
    return official


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


def _final(set_name: str, name: str, ours: str, theirs: str) -> Vector:
    wrong = "" if ours == theirs else "the final database has another hash"
    return Vector("gold", set_name, name, wrong)


def _hashes(domain: str) -> tuple[DatabaseHash, DatabaseHash]:
    return _hash(TAU2, domain), _hash(TAU2, f"{domain} user")


@cache
def _hash(kind: type[DatabaseHash], of: str) -> DatabaseHash:
    return kind()


def _without_drawn(value: Any) -> Any:
    return json.loads(_DRAWN.sub("B*", json.dumps(value)))


def _items(changes: list[Record]) -> set[str]:
    return {json.dumps(change, sort_keys=True) for change in changes}


def _cut(items: set[str]) -> str:
    return ", ".join(sorted(items))[:_SHOWN]
