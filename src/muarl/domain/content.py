"""What a domain is made of, and what of it changed.

A run's folder holds the table of parts, so that a resumed run can say what is no longer as it was;
every episode holds one hash of all that its dialogue and its reward followed from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muarl.domain.files import TooMuch, files_of
from muarl.errors import SpecError
from muarl.messages import ToolSpec
from muarl.spec import DomainSpec, Located, TaskSpec
from muarl.spec.plugged import versions_of
from muarl.world import Change, World, diff, plain

_ELSEWHERE: Any = {
    **dict.fromkeys(("version", "summary", "floor", "shared", "tasks"), True),
    "world": {"data": True, "file": True, "python": True, "sql": {"tables", "files", "rows"}},
    "device": {"world"},
}
"""Fields of a domain's file that no dialogue and no reward follows from, or that are parts below."""

_HASHED = (
    "files",
    "tables",
    "base world",
    "tool schemas",
    "user's tool schemas",
    "task content",
    "loop",
)


def content_of(located: Located[DomainSpec], base: World) -> dict[str, Any]:
    """The parts that all dialogues of a domain share: its file's fields, all other files, its world.

    Args:
        located: The domain's file.
        base: The world before any task.

    Raises:
        SpecError: The folder holds more than can be looked at.
    """
    spec = located.spec
    try:
        files = files_of(spec, located.path.parent)
    except TooMuch as much:
        message = (
            f"all files beside a domain count as parts of it, and its folder is too large: "
            f"{much}; give the domain a folder of its own"
        )
        raise SpecError([located.problem((), message)]) from much
    return {
        **spec.model_dump(mode="json", exclude=_ELSEWHERE, exclude_defaults=True),
        "files": files,
        "tables": {name: hashed(statement) for name, statement in base.schema.items()},
        "base world": {key: hashed(plain(value)) for key, value in base.items()},
        **plugins_of(spec),
    }


def plugins_of(*specs: Any) -> dict[str, Any]:
    """The part `plug-ins` of a table, where specs name any: who provides them, in which version."""
    versions = versions_of(*specs)
    return {"plug-ins": versions} if versions else {}


def predicates_of(task: TaskSpec) -> list[Any]:
    """What of a task may name plug-ins."""
    return [task.reward, task.training_reward, task.metrics]


def schemas_of(tools: Iterable[ToolSpec], user_tools: Iterable[ToolSpec] = ()) -> dict[str, Any]:
    """The part `tool schemas` of a table, and `user's tool schemas` where she has some."""
    sides = {"tool schemas": tools, "user's tool schemas": user_tools}
    table = {
        part: {tool.name: hashed([tool.description, tool.parameters]) for tool in offered}
        for part, offered in sides.items()
    }
    return {part: schemas for part, schemas in table.items() if schemas or part == "tool schemas"}


def tasks_of(splits: Mapping[str, Sequence[TaskSpec]]) -> dict[str, Any]:
    """The part `task content` of a table: ledger, world, gold calls and predicates of each task."""
    return {
        "task content": {
            split: {task.id: task.content_hash for task in tasks} for split, tasks in splits.items()
        }
    }


def hashed(value: Any) -> str:
    """A hash of JSON data, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of a domain changed between two tables of its parts, in words.

    Example:
        ["reward.0.gold_world: true -> false", "task content.train.cancel-1 changed"]
    """
    return [_in_words(change) for change in diff(before, now)]


def _in_words(change: Change) -> str:
    of_suite, _, part = change.path.partition(".")
    if not (part if of_suite.startswith("domain ") else change.path).startswith(_HASHED):
        return str(change)
    how = {"added": "is new", "removed": "is gone"}.get(change.kind, "changed")
    return f"{change.path} {how}"
