"""Sets that can be compared: a domain's tasks, a file of tasks, dialogues of a run, JSON lines, texts."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.domain import load_domain
from muarl.errors import SetupError, UsageError
from muarl.opened_file import opened_file
from muarl.overlap import Item, of_dialogue, of_record, of_task, of_text
from muarl.record import Episode, read_journal
from muarl.spec import load_tasks_file
from muarl.spec.kinds import kind_of

JOURNAL = "episodes.journal"
_DOMAIN = "domain.yaml"
_FORMS = (
    "a domain's folder or file (`PATH:SPLIT` is one split of it), a file of tasks, a run's folder, or a "
    ".jsonl, .json, .parquet, .txt or .md file"
)


def items_of(name: str) -> list[Item]:
    """The items of a set.

    Args:
        name: Its path; with `:SPLIT` behind it, one split of a domain's tasks or of a file of tasks.

    Raises:
        UsageError: There is no such set.
        SetupError: It cannot be read, or holds nothing that could be compared.
        SpecError: A domain or a file of tasks is not sound.
        RecordError: A journal is damaged.
    """
    path, split = Path(name), ""
    if not path.exists() and ":" in name:
        before, _, split = name.rpartition(":")
        path = Path(before)
    if not path.exists():
        raise UsageError(f"{name}: there is no such file or folder; name {_FORMS}")
    try:
        items = _read(path, split)
    except (OSError, EOFError) as error:
        raise SetupError(f"{path}: cannot be read: {error}") from error
    if not items:
        raise SetupError(f"{name}: holds no task, dialogue or text that could be compared")
    return items


def _read(path: Path, split: str) -> list[Item]:
    if path.is_dir() and (path / JOURNAL).is_file():
        path = path / JOURNAL
    endings = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    ending = endings[0] if endings else ""
    if path.is_dir() or ending in (".yaml", ".yml"):
        return _tasks(path, split)
    if split:
        raise UsageError(f"{path}: only tasks have splits; leave `:{split}` out")
    if ending == ".journal":
        return [_of_episode(episode) for episode in read_journal(path) if episode.turns]
    reader = _READERS.get(ending)
    if reader is None:
        raise UsageError(f"{path}: is of no known form; name {_FORMS}")
    return list(reader(path))


def _tasks(path: Path, split: str) -> list[Item]:
    file = path / _DOMAIN if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"{path}: holds neither {_DOMAIN} nor {JOURNAL}; name {_FORMS}")
    if kind_of(file) == "tasks":
        tasks = load_tasks_file(file).spec.tasks
        return [of_task(task) for task in tasks if split in ("", task.split)]
    domain = load_domain(path)
    return [
        of_task(task) for one in ([split] if split else domain.splits) for task in domain.tasks(one)
    ]


def _of_episode(episode: Episode) -> Item:
    replies = [episode.opening, *(turn.reply for turn in episode.turns if turn.reply is not None)]
    calls = [call for turn in episode.turns for call in turn.calls]
    return of_dialogue(
        str(episode.key),
        "\n".join(reply.text for reply in replies),
        [(call.name, call.arguments) for call in calls],
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with opened_file(path) as raw:
        plain: Any = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        text = io.TextIOWrapper(plain, encoding="utf-8", errors="replace")
        for number, line in enumerate(text, start=1):
            if line.strip():
                yield number, line


def _of_json_lines(path: Path) -> Iterator[Item]:
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SetupError(f"{path}:{number}: is no JSON: {error}") from error
        if item := of_record(f"line {number}", record):
            yield item


def _of_json(path: Path) -> Iterator[Item]:
    try:
        found = json.loads("".join(line for _, line in _lines(path)))
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path}: is no JSON: {error}") from error
    named = (
        found.items()
        if isinstance(found, Mapping)
        else enumerate(found if isinstance(found, list) else [])
    )
    for name, record in named:
        if item := of_record(str(name), record):
            yield item


def _of_parquet(path: Path) -> Iterator[Item]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ModuleNotFoundError as error:
        raise SetupError(
            f"{path}: reading Parquet needs pyarrow: pip install 'muarl[export]'"
        ) from error
    try:
        rows = read_table(path).to_pylist()
    except ArrowException as error:
        raise SetupError(f"{path}: is no Parquet: {error}") from error
    for number, row in enumerate(rows):
        if item := of_record(f"row {number}", row):
            yield item


def _of_text(path: Path) -> Iterator[Item]:
    return (of_text(f"line {number}", line) for number, line in _lines(path))


_READERS: Mapping[str, Callable[[Path], Iterator[Item]]] = {
    ".jsonl": _of_json_lines,
    ".json": _of_json,
    ".parquet": _of_parquet,
    ".txt": _of_text,
    ".md": _of_text,
}
