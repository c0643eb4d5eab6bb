"""What is compared: tasks, dialogues and texts, as words and entities."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from muarl.overlap.tasks import Traits, words_of
from muarl.spec import TaskSpec
from muarl.spoken import MAX_CHARS
from muarl.spoken.signs import folded

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[\w@.+-]*\w")

TEXTS = ("goal", "instruction", "instructions", "question", "prompt", "text", "user_scenario")
"""Fields of a record that say what it is about, where it has no messages; the first that does counts."""

_CHATS = ("messages", "conversations")
_USERS = ("user", "human")


@dataclass(frozen=True, slots=True)
class Item:
    """One task, dialogue or text of a set.

    Attributes:
        id: Its name in the set.
        words: Its words, in small letters, however they are spelled.
        entities: What it names: values of facts and arguments, and words that bear a figure or an @.
        same: Two items that share one of these are the same: in all their words, one after another
            and, of tasks, in the same world; or in what is to be done.
        gold: Of a task, the calls that the agent is to make, each as `call_of` writes it; empty where
            none of them has arguments, which says nothing of whom it is about.
        made: Of a dialogue, the calls that were made. One that makes all gold calls of a task is of it.
    """

    id: str
    words: frozenset[str]
    entities: frozenset[str]
    same: frozenset[str]
    gold: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()


def call_of(tool: str, arguments: Any) -> str:
    """A call as a text: of two that are the same, the same one.

    Example:
        >>> call_of("pay", {"sum": 4.0, "to": "ann"}) == call_of("pay", {"to": "ann", "sum": 4})
        True
    """
    return f"{tool} {json.dumps(_plain_numbers(arguments), sort_keys=True, default=str)}"


def of_text(name: str, text: str, values: Iterable[str] = ()) -> Item:
    """A text, and values that it is about.

    Example:
        >>> sorted(of_text("a", "Send W17 to ann@x.org, please.").entities)
        ['ann@x.org', 'w17']
    """
    text = _plain(text)
    said = _WORD.findall(text)
    named = (name for name in _NAME.findall(text) if _is_name(name))
    entities = frozenset((*named, *(_plain(value).strip("#") for value in values)))
    same = frozenset([f"said {' '.join(said)}"] if said else [])
    return Item(name, frozenset(said), entities - {""}, same)


def _plain(text: str) -> str:
    """In small letters; letters that only look like others, accents and signs that nobody sees do not count."""
    if text.isascii():
        return text.casefold()
    pieces = (text[at : at + MAX_CHARS] for at in range(0, len(text), MAX_CHARS))
    return "".join(map(folded, pieces))


def of_task(task: TaskSpec) -> Item:
    """A task: the words of its goal or of its fixed messages, the entities of its facts and gold calls.

    Tasks of a help desk say the same of other faults: a task with a world of its own is the same only
    in that world, and no more than alike in words to a text, which has none.
    """
    traits = Traits.of(task)
    item = of_text(task.id, words_of(task), traits.entities)
    world = json.dumps(task.world, sort_keys=True) if task.world else ""
    said = {f"{said}{world and f' in {world}'}" for said in item.same}
    asked = [call for call in task.gold if call.by == "agent"]
    gold = [call_of(call.tool, call.arguments) for call in asked]
    named = any(call.arguments for call in asked)
    return replace(
        item,
        same=frozenset(said | {f"done {traits.deed}"}),
        gold=frozenset(gold if named else []),
    )


def of_dialogue(name: str, said: str, calls: Iterable[tuple[str, Any]]) -> Item:
    """A dialogue.

    Args:
        name: Its name in the set.
        said: What the user says in it.
        calls: Tool and arguments of each call of the agent.
    """
    calls = list(calls)
    item = of_text(name, said, (text for _, arguments in calls for text in _texts(arguments)))
    made = set()
    for call in calls:
        with suppress(RecursionError):  # nested deeper than the arguments of any gold call
            made.add(call_of(*call))
    return replace(item, made=frozenset(made))


def of_record(name: str, record: Any) -> Item | None:
    """A line of a JSON file: a dialogue with `messages`, or whatever has a text; None if it has none.

    Of a dialogue count what the user says and what the tools are called with.
    """
    if isinstance(record, str):
        return of_text(name, record)
    if not isinstance(record, Mapping):
        return None
    name = str(record.get("id", name))
    for field in _CHATS:
        if (chat := _chat(record.get(field))) and chat[0]:
            return of_dialogue(name, *chat)
    for field in TEXTS:
        part = record.get(field)
        chat = _chat(part)
        text = "\n".join(_texts(part)) if chat is None else chat[0]
        if text:
            beside = (record[key] for key in record if key != field)
            values = [value for part in beside for value in _texts(part)]
            return of_text(name, text, filter(_is_one_name, values))
    return None


def _chat(value: Any) -> tuple[str, list[tuple[str, Any]]] | None:
    """What the user says and which tools are called with what, in a list of messages; None if it is none."""
    if not isinstance(value, list) or not all(isinstance(message, Mapping) for message in value):
        return None
    said = [
        text
        for message in value
        if message.get("role", message.get("from")) in _USERS
        for text in _texts(message.get("content", message.get("value")))
    ]
    calls = [
        _call(call)
        for message in value
        if isinstance(made := message.get("tool_calls"), list)
        for call in made
    ]
    return "\n".join(said), calls


def _call(call: Any) -> tuple[str, Any]:
    """Tool and arguments of a call, in the form of chat completions or without its `function`."""
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        call = call["function"]
    if not isinstance(call, Mapping):
        return "", call
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # what is no JSON is still compared as a text
            arguments = json.loads(arguments)
    return str(call.get("name", "")), arguments


def _plain_numbers(value: Any) -> Any:
    """JSON data in which a whole number is written in one way."""
    if isinstance(value, Mapping):
        return {str(key): _plain_numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_one_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None and _is_name(value)


def _is_name(word: str) -> bool:
    return "@" in word or any(map(str.isdecimal, word))


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
