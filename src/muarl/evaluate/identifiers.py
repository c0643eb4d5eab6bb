"""Identifiers that an agent made up: arguments of its calls that nobody had told it.

What bears a figure names something: `W41`, `2026-05-03`, `ann7@post.example`. It has to have been told
before the call by the rules, a tool's description, the user or a tool, whatever its spelling
(`muarl.spoken`); what the agent said itself tells it nothing. Words and amounts may be the agent's own:
a city is translated, a sum is worked out. So a number that is no text counts only under a name such as
`order_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from muarl.credit.provenance import answer_of
from muarl.record import Episode
from muarl.spoken import Reading, read
from muarl.spoken.naming import entities

_NAMES_IT = re.compile(r"(?:^|_)(?:id|ids|number|no|nr|code|account|phone|ref|key)$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Unsaid(NamedTuple):
    """An identifier that nobody told.

    Attributes:
        turn: The turn of the call.
        tool: What was called.
        path: Where in its arguments.
        value: What was made up.
    """

    turn: int
    tool: str
    path: str
    value: str


def first_unsaid(episode: Episode) -> Unsaid | None:
    """The first identifier of an episode's calls that was told by nobody before; None if all were."""
    told = _Told()
    told.add(read(episode.system), entities(episode.system))
    for tool in episode.tools:
        told.text(f"{tool.name} {tool.description} {tool.parameters}")
    told.text(episode.opening.text)
    for number, turn in enumerate(episode.turns):
        for call in turn.calls:
            for path, text in identifiers(call.arguments):
                for name in sorted(entities(text)):
                    if not told.knows(name):
                        return Unsaid(number, call.name, path, name)
        told.text(answer_of(turn))
    return None


def identifiers(arguments: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a call's arguments that may name something, with their places.

    Example:
        >>> list(identifiers({"order_id": 417, "amount": 12.5, "to": {"city": "Oslo"}}))
        [('order_id', '417'), ('to', 'city'), ('to.city', 'Oslo')]
    """
    match arguments:
        case dict():
            for key, below in arguments.items():
                if path:  # those of the call itself are the tool's
                    yield path, str(key)
                yield from identifiers(below, f"{path}.{key}" if path else str(key))
        case list():
            for below in arguments:
                yield from identifiers(below, path)
        case str():
            yield path, arguments
        case bool():
            return
        case int() | float():
            last = _CAMEL.sub("_", path.rpartition(".")[2])
            if _NAMES_IT.search(last):
                yield path, str(int(arguments) if arguments == arguments // 1 else arguments)


class _Told:
    """All that was told so far."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []
        self._names: set[str] = set()

    def text(self, text: str) -> None:
        self.add(read(text), entities(text))

    def add(self, reading: Reading, names: frozenset[str]) -> None:
        self._readings.append(reading)
        self._names |= names

    def knows(self, name: str) -> bool:
        wanted = read(name)
        return name in self._names or any(said.may_say(wanted) for said in self._readings)
