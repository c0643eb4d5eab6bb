"""Entities: what a task is about, by the names that the world has for its records.

In a world of any shape a record is told from its fields by its name. `orders.W1` is one, as every
mapping is that lies in a mapping at the top; deeper, names of fields are words (`address`), and those of
records are not (`W1`, `Ada Byron`). Records in a list have their name in a field, such as `id`. What lies
within several records, as a product does in many orders, is shared by them and is nobody's entity; nor is what
lies in a part of the world that the domain's `shared` names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from muarl.data.proof.values import facts_of
from muarl.spec import TaskSpec
from muarl.spec.device import DEVICE
from muarl.world import World, plain

_FIELD = re.compile(r"[A-Za-z_]+")
_NAMING = re.compile(r"id|.*_id|.*Id|name|key|code|number")
_COUNTED = re.compile(r"\d{1,3}")
"""May be a count as well as a record's number."""


class Entities:
    """The records of a domain's world and of its tasks' own.

    Args:
        base: The world before any task.
        tasks: The tasks.
        shared: Parts of the world, by the fields that they lie in, whose records belong to all.

    Attributes:
        parts: Parts in which records lie.
    """

    def __init__(
        self, base: World, tasks: Sequence[TaskSpec], shared: Collection[str] = ()
    ) -> None:
        of_tasks = {task.id: list(_records(task.world)) for task in tasks}
        of_all = list(_records(plain(base)))
        self.parts = {kind for found in (of_all, *of_tasks.values()) for _, kind, _ in found}
        self._brought = {
            task_id: [record for record in found if record[1] not in shared]
            for task_id, found in of_tasks.items()
        }
        owners: defaultdict[str, set[str]] = defaultdict(set)
        self._kinds: defaultdict[str, set[str]] = defaultdict(set)
        for found in ([r for r in of_all if r[1] not in shared], *self._brought.values()):
            for name, kind, owner in found:
                owners[name.casefold()].add(owner)
                self._kinds[name.casefold()].add(kind)
        self._known = {name for name, of in owners.items() if "" in of or len(of) == 1}

    def of(self, task: TaskSpec) -> set[str]:
        """Entities that a task brings along, or names in a fact or in an argument of a gold call."""
        named = {name for name, _, _ in self._brought[task.id]}
        named |= {fact.value for fact in facts_of(task) if self._is_meant(fact.id, fact.value)}
        for call in task.gold:
            named |= {text for key, text in _texts(call.arguments) if self._is_meant(key, text)}
        return {name for name in named if name.casefold() in self._known}

    def part_of(self, name: str) -> str:
        """The part of the world in which a record lies; of several, the first by name."""
        return min(self._kinds[name.casefold()])

    def _is_meant(self, key: str, value: str) -> bool:
        """Whether a value under this key may be a record's name: `days: 7` is not the 7th loan."""
        if not _COUNTED.fullmatch(value):
            return True
        kinds = self._kinds.get(value, ())
        return _NAMING.fullmatch(key) is not None or any(
            kind.casefold().startswith(word) or word.startswith(kind.casefold())
            for kind in kinds
            for word in key.casefold().split("_")
            if len(word) > 2
        )


def _records(world: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, kind and owner of the records in a world; "" owns what lies in no other record."""
    # A device is a person's own: there is one in every task, and its parts are no entities.
    for kind, part in world.items():
        if kind != DEVICE:
            yield from _within(part, kind, "", at_top=True)


def _within(
    part: Any, kind: str, owner: str, *, at_top: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Records in a part of a world.

    Args:
        part: The part.
        kind: The field that it lies in.
        owner: The record that it lies in.
        at_top: Whether it lies at the world's top, where the mappings in it are records.
    """
    if isinstance(part, list):
        field = _naming_field(part, owner)
        for item in part:
            name = str(item[field]) if field is not None else owner
            if field is not None:
                yield name, kind, owner
            if isinstance(item, dict):
                for key, inner in item.items():
                    yield from _within(inner, key, name)
    elif isinstance(part, dict):
        holds_records = at_top or _is_collection(part)
        for key, inner in part.items():
            # `orders` in a mapping at the top, if that is how the world is built, is no order.
            is_kind = _FIELD.fullmatch(key) is not None and _is_collection(inner)
            if holds_records and isinstance(inner, dict) and not is_kind:
                yield key, kind, owner
                for field, below in inner.items():
                    yield from _within(below, field, key)
            else:
                yield from _within(inner, key, owner)


def _is_collection(part: Any) -> bool:
    """Whether a mapping's keys are names of records: they are no names of fields."""
    return (
        isinstance(part, dict)
        and all(isinstance(record, dict) for record in part.values())
        and any(not _FIELD.fullmatch(key) for key in part)
    )


def _naming_field(items: list[Any], owner: str) -> str | None:
    """The field by which records of a list are told apart; None if they are none, or none does."""
    if not items or not all(isinstance(item, dict) and item for item in items):
        return None
    fields: list[str] = list(items[0])
    naming = [field for field in fields if _NAMING.fullmatch(field)]
    # A history has steps and an order has lines: what lies in a record need not be one.
    for field in naming if owner or len(items) == 1 else [*naming, *fields]:
        values = [item.get(field) for item in items]
        if all(type(value) in (str, int) for value in values) and len(set(values)) == len(items):
            return field
    return None


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Texts and whole numbers in JSON data, with the key that each stands under."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner, key)
    elif type(value) in (str, int):
        yield key, str(value)
