"""Published tasks as tasks of a muarl domain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any

from muarl.compat.strictness import strictly_equal
from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.toolkit import Toolkit
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.spec.device import DEVICE
from muarl.world import World, plain
from muarl.world.compare import is_map, keys_to_compare, peek, same_origin

_NOT_OF_AN_ID = re.compile(r"[^A-Za-z0-9_.-]+")


def as_id(published: str) -> str:
    """A task's id with what no id of ours holds left out.

    Example:
        >>> as_id("[mms_issue]bad_network|bad_apn[PERSONA:None]")
        'mms_issue-bad_network-bad_apn-PERSONA-None'
    """
    return _NOT_OF_AN_ID.sub("-", published).strip("-")


def scenario(task: Task) -> str:
    """What tau2-bench's simulated user is told of a task."""
    given = task["user_scenario"]
    parts = []
    if given.get("persona") is not None:
        parts += ["Persona:", indent(given["persona"], "\t")]
    return "\n".join([*parts, "Instructions:", indent(_instructions(given["instructions"]), "\t")])


def _instructions(given: Any) -> str:
    if isinstance(given, str):
        return given
    lines = [f"Domain: {given['domain']}"]
    for key, title in (
        ("reason_for_call", "Reason for call"),
        ("known_info", "Known info"),
        ("unknown_info", "Unknown info"),
        ("task_instructions", "Task instructions"),
    ):
        if given.get(key) is not None:
            lines += [f"{title}:", indent(given[key], "\t")]
    return "\n".join(lines)


def tau1_gold(kit: Toolkit, task: Task) -> list[GoldCallSpec]:
    """Its reference calls that are answered without an error; the others change nothing."""
    return [
        GoldCallSpec(tool=action["name"], arguments=action["kwargs"])
        for action in task["actions"]
        if not kit.call(action["name"], action["kwargs"]).is_error
    ]


def tau2_gold(env: Tau2Environment, task: Task) -> list[GoldCallSpec]:
    """Likewise, of both sides."""
    return [
        GoldCallSpec(
            tool=action["name"],
            arguments=action["arguments"],
            by="user" if action.get("requestor") == "user" else "agent",
        )
        for action in (task.get("evaluation_criteria") or {}).get("actions") or ()
        if not env.call(
            action["name"], action["arguments"], action.get("requestor") or "assistant"
        ).is_error
    ]


def begun(env: Tau2Environment, before: tuple[World, World | None]) -> dict[str, Any]:
    """What an environment changed of the databases before any task: a task's `world`."""
    patch = _patch(before[0], env.agent.db)
    if env.user is not None and before[1] is not None:
        hers = _patch(before[1], env.user.db)
        if hers:
            patch[DEVICE] = hers
    return patch


def _patch(before: Any, after: Any) -> dict[str, Any]:
    """What merged over `before` gives `after`: mappings are merged, everything else replaces."""
    patch: dict[str, Any] = {}
    for key in sorted(keys_to_compare(before, after)):
        if key not in after:
            raise ValueError(f"a task takes {key!r} out of the world, which no patch can")
        new = peek(after, key)
        if key in before:
            old = peek(before, key)
            if same_origin(old, new) or strictly_equal(old, new):
                continue
            if is_map(old) and is_map(new):
                patch[key] = _patch(old, new)
                continue
        patch[key] = plain(new)
    return patch


def asks(function: str, task: str, says: Sequence[str] = ()) -> PredicateSpec:
    """A predicate of a task that a function in the domain's `tools.py` decides."""
    arguments = {"task": task}
    given = {"function": f"tools.py:{function}", "arguments": arguments, "says": list(says)}
    return PredicateSpec.model_validate({"python": given})


def judged_by(judge: Mapping[str, Any], assertions: Sequence[str]) -> Iterator[PredicateSpec]:
    """A predicate for each assertion in natural language, by a judge that the import named."""
    for assertion in assertions:
        yield PredicateSpec.model_validate({"judge": {"criterion": assertion, **judge}})
