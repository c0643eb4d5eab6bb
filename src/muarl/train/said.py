"""What a run itself wrote down beside the scores of an evaluation, in its metrics or as a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from muarl.errors import RecordError
from muarl.evaluate.contamination import Contamination
from muarl.evaluate.floor import highest
from muarl.evaluate.statistics import Interval
from muarl.spec.grid import sides_of
from muarl.train.run_folder import RunFolder

T = TypeVar("T")

RESULT = "grid.json"
"""Where a grid's folder holds what was found: `grid`, its spec, `tasks`, and the fields of
`GridFound`."""


class Said(msgspec.Struct, frozen=True):
    """What stands beside a score.

    Attributes:
        floor: The best success of a policy without skill; None where none played.
        contamination: What of the tasks the policy was trained on; None where a run of before that tag was
            not asked.
        observed: What was measured as it played; empty where nobody did.
    """

    floor: Interval | None
    contamination: Contamination | None
    observed: dict[str, Any]


class _Line(msgspec.Struct):
    floor: Interval | float | None = None  # a number in grids of before intervals
    contamination: Contamination | None = None
    observed: dict[str, Any] | None = None


class _Floor(msgspec.Struct):
    success: Interval | float | None = None


class _Cell(_Line):
    policy: str = ""
    user: str = ""


class _Users(msgspec.Struct, frozen=True):
    users: dict[str, Any] = {}


class _Grid(msgspec.Struct):
    cells: list[_Cell] = []
    grid: _Users = _Users()


def said_of(folder: RunFolder, lines: list[dict[str, Any]], phase: str) -> Said:
    """What a run says of one phase.

    Args:
        folder: The run's.
        lines: Of its metrics.
        phase: Of its journal.

    Raises:
        RecordError: It is damaged; names the file.
    """
    if (sides := sides_of(phase)) is not None:
        cells = (cell for cell in _grid(folder).cells if (cell.policy, cell.user) == sides)
        line: _Line = next(cells, _Line())
    else:
        found = [each for each in lines if _sums_up(each) == phase]
        line = _read(folder.metrics, phase, found[-1], _Line) if found else _Line()
    floor = line.floor if isinstance(line.floor, Interval) else None
    if floor is None:
        scores = (
            _read(folder.metrics, f"floor {each['name']!r}", each, _Floor).success
            for each in lines
            if each["kind"] == "floor"
        )
        floor = highest(score for score in scores if isinstance(score, Interval))
    return Said(floor, line.contamination, line.observed or {})


def user_of_grid(folder: RunFolder, name: str) -> Any:
    """Who a user of a grid is; her name where the grid is not finished.

    Raises:
        RecordError: `grid.json` is damaged.
    """
    return _grid(folder).grid.users.get(name, name)


def _sums_up(line: dict[str, Any]) -> str:
    """The phase that a line of the metrics sums up."""
    match line:
        case {"kind": "eval", "phase": phase, "temperature": float() | int() as temperature}:
            return f"eval:{phase}:T{temperature:g}"
        case {"kind": "rollout", "phase": str(phase)}:
            return phase
    return ""


def _grid(folder: RunFolder) -> _Grid:
    path = folder.path / RESULT
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Grid)
    except FileNotFoundError:  # the grid is not finished
        return _Grid()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{path}: no grid's result: {error}") from error


def _read(path: Path, what: str, line: dict[str, Any], form: type[T]) -> T:
    try:
        return msgspec.convert(line, form)
    except msgspec.ValidationError as error:
        raise RecordError(
            f"{path}: the line of {what} is damaged: {error}. Remove the line"
        ) from error
