"""Tasks that were composed of goals, kept on disk for the next time that they are asked for.

Composing takes hundredths of a second a task and gives the same for the same domain; a domain's tasks are
asked for by every verb, and in every process of a run.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import TypeAdapter, ValidationError

from muarl.spec import TaskSpec

VARIABLE = "MUARL_TASK_CACHE"
"""Says in which folder they are kept; `off` keeps none."""
MOST = 64
"""Sets of tasks that are kept, a megabyte or less each; the oldest go."""

_TASKS = TypeAdapter(list[TaskSpec])


def kept(key: str, make: Callable[[], Sequence[TaskSpec]]) -> tuple[TaskSpec, ...]:
    """Tasks that were made for a key before, or made now and kept.

    What is there and cannot be read is made anew; a folder that cannot be written is done without.

    Args:
        key: A hash of all that the tasks follow from, but for muarl itself.
        make: Makes them.
    """
    folder = _folder()
    if folder is None:
        return tuple(make())
    file = folder / f"{_hash(key, own_source(), platform.python_version())}.json"
    with suppress(OSError, ValidationError):
        return tuple(_TASKS.validate_json(file.read_bytes(), strict=True))
    tasks = tuple(make())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as part:
            part.write(_TASKS.dump_json(list(tasks)))
        os.replace(part.name, file)  # whole or not at all, whoever else writes it
        _make_room(folder)
    return tasks


@cache
def own_source() -> str:
    """A hash of all of muarl's Python: another muarl may compose other tasks."""
    root = Path(__file__).parents[1]
    return _hash(*(_hash(str(file.relative_to(root)), file.read_text()) for file in _python(root)))


def _python(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py"))


def _folder() -> Path | None:
    said = os.environ.get(VARIABLE, "")
    if said:
        return None if said == "off" else Path(said)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home else Path.home() / ".cache") / "muarl" / "tasks"


def _make_room(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    for file in files[:-MOST]:
        file.unlink(missing_ok=True)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
