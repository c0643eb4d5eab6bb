"""What is compared: tasks, dialogues and texts, as words and entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from muarl.overlap.tasks import Traits
from muarl.spec import TaskSpec

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[\w@.+-]*\w")

TEXTS = ("goal", "instruction", "instructions", "prompt", "question", "text", "user_scenario")
"""Fields of a record that say what it is about, where it has no messages; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class Item:
    """One task, dialogue or text of a set.

    Attributes:
        id: Its name in the set.
        words: Its words, in small letters.
        entities: What it names: values of facts and arguments, and words that bear a figure or an @.
        same: Two items that share one of these are the same: in all their words, one after another,
            or in what is to be done.
    """

    id: str
    words: frozenset[str]
    entities: frozenset[str]
    same: frozenset[str]


def of_text(name: str, text: str, values: Iterable[str] = ()) -> Item:
    """A text, and values that it is about.

    Example:
        >>> sorted(of_text("a", "Send W17 to ann@x.org, please.").entities)
        ['ann@x.org', 'w17']
    """
    said = _WORD.findall(text.casefold())
    named = (name for name in _NAME.findall(text.casefold()) if _is_name(name))
    entities = frozenset((*named, *(value.casefold().strip("#") for value in values)))
    same = frozenset([f"said {' '.join(said)}"] if said else [])
    return Item(name, frozenset(said), entities - {""}, same)


def of_task(task: TaskSpec) -> Item:
    """A task: the words of its goal, the entities of its facts and gold calls."""
    traits = Traits.of(task)
    item = of_text(task.id, task.goal, traits.entities)
    return replace(item, same=item.same | {f"done {traits.deed}"})


def of_record(name: str, record: Any) -> Item | None:
    """A line of a JSON file: a dialogue with `messages`, or whatever has a text; None if it has none.

    Of a dialogue count what the user says and what the tools are called with.
    """
    if isinstance(record, str):
        return of_text(name, record)
    if not isinstance(record, Mapping):
        return None
    name = str(record.get("id", name))
    chats = (record.get("messages"), record.get("prompt"))
    messages = next((chat for chat in chats if isinstance(chat, list)), None)
    if messages is not None:
        said = [m for m in messages if isinstance(m, Mapping)]
        text = "\n".join(
            t for m in said if m.get("role") == "user" for t in _texts(m.get("content"))
        )
        calls = [call for m in said for call in _list(m.get("tool_calls"))]
        return of_text(name, text, (t for call in calls for t in _texts(call)))
    field = next((field for field in TEXTS if record.get(field)), None)
    if field is None:
        return None
    values = (text for key, part in record.items() if key != field for text in _texts(part))
    named = (value for value in values if _NAME.fullmatch(value) and _is_name(value))
    return of_text(name, "\n".join(_texts(record[field])), named)


def _is_name(word: str) -> bool:
    return "@" in word or any(map(str.isdecimal, word))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> Iterator[str]:
    """All texts in JSON data, and numbers as texts."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            stack += reversed(list(part.values()))
        elif isinstance(part, (list, tuple)):
            stack += reversed(part)
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            yield str(part)
