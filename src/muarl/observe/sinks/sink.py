"""From a line of a run's metrics to the figures that sinks are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muarl.figures import Figures

_AXES = {"cold_start": "step", "user_cold_start": "step"}
"""Kinds of lines with an axis of their own; that of all others is the iteration."""


def figures_of(line: Mapping[str, Any], iterations: int) -> Figures:
    """The numbers of a line of `metrics.jsonl`; none where it holds none.

    Args:
        line: The line.
        iterations: How many there were before it: where lines of no iteration lie.

    Example:
        `{"kind": "iteration", "iteration": 3, "tool_calls": {"find": 0.5}}` has
        `{"iteration/tool_calls/find": 0.5}` at iteration 3.
    """
    kind = str(line["kind"])
    axis = _AXES.get(kind, "iteration")
    at = line.get(axis, iterations)
    parts = [kind]
    if kind in ("eval", "users") and "phase" in line:
        parts += [str(line["phase"]), f"T{line['temperature']:g}"]
    elif kind == "users":
        parts += [str(line["policy"]), str(line["user"])]
    if kind == "floor":
        parts.append(str(line["name"]))
    told = {key: value for key, value in line.items() if key not in (axis, "temperature")}
    return Figures(axis, at, dict(_numbers("/".join(parts), told)))


def _numbers(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(f"{path}/{name}" if name else path, inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)
