"""The published multi-turn entries with their gold calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muarl.compat.bfcl.sandbox import CLASSES
from muarl.compat.upstream import as_json
from muarl.errors import SetupError

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")


class Said(msgspec.Struct, frozen=True):
    """One message of an entry.

    Attributes:
        role: Who says it, always the user.
        content: What is said.
    """

    role: str
    content: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task and its gold calls.

    Attributes:
        id: `multi_turn_base_0`.
        question: By turn, what the user says; nothing where held back functions are shown.
        initial_config: By class, what its instance begins with.
        involved_classes: Of which classes there are instances.
        ground_truth: By turn, the gold calls as Python text.
        missed_function: By turn, written in digits, the functions that are shown only from there on.
    """

    id: str
    question: Sequence[Sequence[Said]]
    initial_config: Mapping[str, Any]
    involved_classes: Sequence[str]
    ground_truth: Sequence[Sequence[str]]
    missed_function: Mapping[str, Sequence[str]] = {}

    @property
    def is_long(self) -> bool:
        """Whether its classes are filled up with what nobody asked for."""
        return "long_context" in self.id


def read_entries(questions: str, answers: str, file: str) -> list[Entry]:
    """The entries of a category, in their order.

    Args:
        questions: The file of entries, a JSON object a line.
        answers: That of their gold calls, likewise.
        file: What messages call them.

    Raises:
        SetupError: A line is none; says which.
    """
    gold = {}
    for number, line in _lines(answers):
        answer = _json(line, f"possible_answer/{file}:{number}")
        gold[answer.get("id")] = answer.get("ground_truth")
    found = []
    for number, line in _lines(questions):
        place = f"{file}:{number}"
        task = _json(line, place)
        try:
            entry = msgspec.convert({**task, "ground_truth": gold.get(task.get("id"))}, Entry)
        except msgspec.ValidationError as error:
            raise SetupError(f"{place} and its answer: no entry of BFCL: {error}") from None
        if unknown := sorted(set(entry.involved_classes) - CLASSES.keys()):
            raise SetupError(f"{place}: there is no class {unknown[0]!r}")
        found.append(entry)
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    numbered = enumerate(text.splitlines(), start=1)
    return [(number, line) for number, line in numbered if line.strip()]


def _json(line: str, place: str) -> dict[str, Any]:
    value = as_json(line, place)
    if not (isinstance(value, dict) and isinstance(value.get("id"), str)):
        raise SetupError(f"{place}: expected a JSON object with an id")
    return value
