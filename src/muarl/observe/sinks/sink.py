"""What a sink is given, and what it has to offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

_AXES = {"cold_start": "step", "user_cold_start": "step"}
"""Kinds of lines with an axis of their own; that of all others is the iteration."""


class Figures(msgspec.Struct, frozen=True):
    """The numbers of one line of a run's metrics.

    Attributes:
        axis: What `at` counts: `iteration`, or the `step` of a cold start.
        at: Where on it they lie.
        values: Path to number, such as `iteration/reward_mean` or `eval/final/T1/success/value`.
    """

    axis: str
    at: int
    values: dict[str, float]


class Sink(Protocol):
    """Takes figures as they come. What it raises ends the sink, and not the run."""

    def write(self, figures: Figures) -> None:
        """Take the figures of one line."""
        ...

    def rewind(self, kept: list[Figures]) -> None:
        """A resumed run is going to write again what is not `kept`, which is all that came before."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


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
