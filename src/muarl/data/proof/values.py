"""Values that a task speaks of, and calls of tools made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from muarl.messages import ToolSpec
from muarl.spec import FactSpec, TaskSpec

_PLAIN: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def facts_of(task: TaskSpec) -> list[FactSpec]:
    """Every fact the user holds, those she may change to included."""
    if task.user is None:
        return []
    wished = [fact for request in task.user.requests for fact in request.all_facts()]
    return [*task.user.facts, *wished]


def values_of(task: TaskSpec) -> dict[str, list[Any]]:
    """Name of a fact or argument to the values that the task has for it."""
    found: dict[str, list[Any]] = {}
    for fact in facts_of(task):
        found.setdefault(fact.id, []).append(fact.value)
    for call in task.gold:
        for name, value in call.arguments.items():
            found.setdefault(name, []).append(value)
    return found


def calls_of(
    tool: ToolSpec, named: Mapping[str, Sequence[Any]], others: Sequence[Any], limit: int
) -> Iterator[dict[str, Any]]:
    """Arguments to try a tool with, at most `limit` of them.

    Args:
        tool: The tool.
        named: Values for parameters of these names.
        others: Values for the rest that take text.
        limit: How many.
    """
    parameters: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", list(parameters))
    names = [name for name in parameters if name in required or name in named]
    choices = [_choices(parameters[name], named.get(name, ()), others) for name in names]
    for values in islice(product(*choices), limit):
        yield dict(zip(names, values, strict=True))


def _choices(schema: Any, named: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
    if named:
        return named
    if not isinstance(schema, Mapping):
        return others
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    if (kind := schema.get("type")) in _PLAIN:
        return [_PLAIN[kind]]
    return others
