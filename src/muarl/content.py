"""What a domain is made of, and what of it changed.

A run's folder holds the table of parts, so that a resumed run can say what is no longer as it was;
every episode holds one hash of all that its dialogue and its reward followed from.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.messages import ToolSpec
from muarl.spec import DomainSpec, TaskSpec
from muarl.spec.base import PYTHON_REF_PATTERN
from muarl.world import Change, World, diff, plain

_ELSEWHERE: Any = {
    **dict.fromkeys(("version", "summary", "floor", "tasks", "world"), True),
    "device": {"world"},
}
"""Fields of a domain's file that no dialogue and no reward follows from, or that are parts below."""

_WITHOUT_CODE: Any = {
    **dict.fromkeys(("rules", "summary", "personas", "user"), True),
    "world": {"data", "file"},
    "device": {"world": {"data", "file"}},
    "tasks": {"files"},
}
_LONGEST_NAME = 255

_HASHED = ("code", "base world", "tool schemas", "user's tool schemas", "task content")


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
    if not change.path.startswith(_HASHED):
        return str(change)
    how = {"added": "is new", "removed": "is gone"}.get(change.kind, "changed")
    return f"{change.path} {how}"


def _code(spec: DomainSpec, folder: Path) -> Iterator[Path]:
    """Python beside what the domain names as `file.py:name`, and the files that a command names."""
    inside = folder.resolve()
    found: set[Path] = set()
    for text in _texts(spec.model_dump(mode="json", exclude=_WITHOUT_CODE)):
        if re.fullmatch(PYTHON_REF_PATTERN, text):
            found |= set((folder / text.partition(":")[0]).parent.glob("*.py"))
        elif len(text) < _LONGEST_NAME:
            found.add(folder / text)
    yield from (f for f in found if os.path.isfile(f) and f.resolve().is_relative_to(inside))


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, (dict, list)):
        for item in document.values() if isinstance(document, dict) else document:
            yield from _texts(item)
