"""What somebody can know: texts in which values are looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muarl.spoken import read, readings, says, tokens

WORDED = 5
"""Words from which a text is its writer's own, and need be known from nowhere."""


class Known:
    """Texts that somebody has read or was told."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._readings = [reading for text in texts for reading in readings(text)]
        self._tokens = {token for reading in self._readings for token in reading.tokens}

    def add(self, text: str) -> None:
        """One more text."""
        more = readings(text)
        self._readings += more
        self._tokens.update(token for reading in more for token in reading.tokens)

    def hold(self, value: str) -> bool:
        """Whether one of them says a value."""
        wanted = read(value)
        first = wanted.tokens[0]
        if first[0] == "word" and first not in self._tokens:
            return False  # most values are in none
        return any(reading.may_say(wanted) for reading in self._readings)


def values_in(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name of an argument and each text in it that somebody must have known to write it.

    Numbers can be counted or computed, and texts of `WORDED` words and more are the writer's own.
    """
    for name, value in arguments.items():
        for text in _texts(value):
            if 0 < len(tokens(text)) < WORDED:
                yield name, text


def is_worded(value: str, told: Iterable[str]) -> bool:
    """Whether it is what was told with words of one's own around it: "phone 6001"."""
    return any(says(value, fact) for fact in told)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
