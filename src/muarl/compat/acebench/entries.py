"""The published entries and their answers, one JSON object a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from muarl.compat.acebench.api import Language
from muarl.compat.upstream import as_json, as_text
from muarl.errors import RecordError, SetupError

Kind = Literal["multi_turn", "multi_step"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
KINDS: tuple[Kind, ...] = ("multi_turn", "multi_step")
CLASSES = {"BaseApi", "MessageApi", "ReminderApi", "FoodPlatform", "Travel"}
"""Those that an entry may have instances of."""
Attributes = dict[str, Any]
ByClass = dict[str, Attributes]
"""A class to its attributes."""


class Function(msgspec.Struct, frozen=True):
    """What is needed of a function's description; the rest is kept as it is."""

    name: str
    parameters: Mapping[str, Any]


class Entry(msgspec.Struct, frozen=True):
    """A task and its answer.

    Attributes:
        id: `agent_multi_turn_0`; the same in both languages.
        kind: With a user (`multi_turn`) or without (`multi_step`).
        language: Of tools and texts.
        question: What the user is told; in multi_step, what the agent is.
        initial_config: Attributes by class; only those of `BaseApi` count.
        involved: Classes there are instances of, in order.
        functions: What the agent is told about the tools.
        gold: One class an item, with the attributes that are saved.
        milestones: Alternatives, each the calls of a solution in order, as text.
    """

    id: str
    kind: Kind
    language: Language
    question: str
    initial_config: Mapping[str, Any]
    involved: Sequence[str]
    functions: Sequence[Mapping[str, Any]]
    gold: Sequence[ByClass]
    milestones: Sequence[Sequence[str]]


@cache
def entries(folder: Path, language: Language, kind: Kind) -> dict[str, Entry]:
    """All entries of a kind, by id.

    Args:
        folder: Where `data_en` and `data_zh` are.
        language: Of which of them.
        kind: Of which file.

    Raises:
        RecordError: A file is missing or no entry of it can be read, with its line.
    """
    tasks = _lines(folder / f"data_{language}" / f"data_agent_{kind}.json")
    name = f"data_agent_{kind}.json"
    answers = _lines(folder / f"data_{language}" / "possible_answer" / name)
    answered = {answer.get("id"): (place, answer) for place, answer in answers}
    found = {}
    for place, task in tasks:
        where, answer = answered.get(task.get("id"), (place, {}))
        try:
            entry = _entry(task, answer, language, kind)
        except (KeyError, IndexError, TypeError, msgspec.ValidationError) as error:
            raise RecordError(f"{place} and {where}: not an entry of ACEBench: {error!r}") from None
        if unknown := sorted(set(entry.involved) - CLASSES):
            raise RecordError(f"{place}: there is no class {unknown[0]!r}")
        found[entry.id] = entry
    return found


@cache
def first_records(folder: Path, language: Language) -> Mapping[str, Mapping[str, Any]]:
    """The messages and reminders that every task begins with, by attribute and number.

    Upstream has them in its code. In the answers those that a task leaves alone remain, so what
    most answers hold under a number is what was there at first.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for kind in KINDS:
        for entry in entries(folder, language, kind).values():
            for attribute, number, record in _numbered(entry):
                counts.setdefault((attribute, number), Counter())[json.dumps(record)] += 1
    first: dict[str, dict[str, Any]] = {"inbox": {}, "reminder_list": {}}
    for (attribute, number), texts in sorted(counts.items()):
        if int(number) <= _FIRST[attribute]:
            first[attribute][number] = json.loads(texts.most_common(1)[0][0])
    for attribute, count in _FIRST.items():
        if len(first[attribute]) != count:
            raise RecordError(
                f"{folder}: the {language} answers hold {len(first[attribute])} of the "
                f"{count} records that {attribute} begins with; is the data complete?"
            )
    return first


_FIRST = {"inbox": 6, "reminder_list": 3}
"""How many records there are at first."""


def _numbered(entry: Entry) -> Iterator[tuple[str, str, Any]]:
    for attributes in (attributes for item in entry.gold for attributes in item.values()):
        for attribute in _FIRST:
            for number, record in attributes.get(attribute, {}).items():
                yield attribute, number, record


def _entry(task: Any, answer: Any, language: Language, kind: Kind) -> Entry:
    gold, milestones = answer["ground_truth"], answer["mile_stone"]
    msgspec.convert(task["function"], list[Function])
    return msgspec.convert(
        {
            "id": task["id"],
            "kind": kind,
            "language": language,
            "question": task["question"],
            "initial_config": task["initial_config"],
            "involved": task["involved_classes"],
            "functions": task["function"],
            "gold": gold if isinstance(gold, list) else [gold],
            "milestones": milestones if isinstance(milestones[0], list) else [milestones],
        },
        Entry,
    )


def _lines(file: Path) -> list[tuple[str, Any]]:
    if not file.is_file():
        raise RecordError(
            f"there is no {file}: expected ACEBench's folder with data_en and data_zh"
        )
    found = []
    for number, line in enumerate(as_text(file.read_bytes(), file).splitlines(), start=1):
        if line.strip():
            try:
                value = as_json(line, f"{file}:{number}")
            except SetupError as error:
                raise RecordError(str(error)) from None
            if not (isinstance(value, dict) and isinstance(value.get("id"), str)):
                raise RecordError(f"{file}:{number}: expected a JSON object with an id")
            found.append((f"{file}:{number}", value))
    return found
