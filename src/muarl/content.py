"""What a domain is made of, and what of it changed.

A run's folder holds the table of parts, so that a resumed run can say what is no longer as it was;
every episode holds one hash of all that its dialogue and its reward followed from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.messages import ToolSpec
from muarl.spec import DomainSpec, TaskSpec
from muarl.world import Change, World, diff, plain

_ELSEWHERE = {"version", "summary", "floor", "tasks", "world"}
"""Fields of a domain's file that no dialogue and no reward follows from, or that are parts below."""

_HASHED = ("code", "base world", "tool schemas", "task content")


def content_of(spec: DomainSpec, folder: Path, base: World) -> dict[str, Any]:
    """The parts that all dialogues of a domain share: its file's fields, its code, its world.

    Args:
        spec: The domain's file.
        folder: Its folder.
        base: The world before any task.
    """
    return {
        **spec.model_dump(mode="json", exclude=_ELSEWHERE, exclude_defaults=True),
        "code": {
            str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()[:16]
            for file in sorted(_code(spec, folder))
        },
        "base world": {key: hashed(plain(value)) for key, value in base.items()},
    }


def schemas_of(tools: Iterable[ToolSpec]) -> dict[str, Any]:
    """The part `tool schemas` of a table."""
    return {
        "tool schemas": {tool.name: hashed([tool.description, tool.parameters]) for tool in tools}
    }


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
    if not change.path.startswith(_HASHED):
        return str(change)
    how = {"added": "is new", "removed": "is gone"}.get(change.kind, "changed")
    return f"{change.path} {how}"


def _code(spec: DomainSpec, folder: Path) -> Iterator[Path]:
    """Python beside what the domain names, and the files that its command names."""
    named = [spec.tools.python, spec.world.python, spec.tasks.python, spec.expert]
    homes = {(folder / reference.partition(":")[0]).parent for reference in named if reference}
    found = {file for home in homes for file in home.glob("*.py")}
    found |= {folder / word for word in spec.tools.command or ()}
    inside = folder.resolve()
    yield from (f for f in found if f.is_file() and f.resolve().is_relative_to(inside))
