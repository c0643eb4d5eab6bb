"""What somebody can know: texts in which values are looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muarl.json_values import texts_in
from muarl.spoken import Reading, Token, read, readings, says, tokens

WORDED = 5
"""Words from which a text is its writer's own, and need be known from nowhere."""


class Known:
    """Texts that somebody has read or was told. Each is read once something is looked for in it."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._unread = list(texts)
        self._readings: list[Reading] = []
        self._tokens: set[Token] = set()

    def add(self, text: str) -> None:
        """One more text."""
        self._unread.append(text)

    def hold(self, value: str) -> bool:
        """Whether one of them says a value."""
        wanted = read(value)
        if self._may_hold(wanted):
            return True
        while self._unread:  # the last that was told says most often what is needed next
            more = readings(self._unread.pop())
            self._readings += more
            self._tokens.update(token for reading in more for token in reading.tokens)
            if any(reading.may_say(wanted) for reading in more):
                return True
        return False

    def _may_hold(self, wanted: Reading) -> bool:
        first = wanted.tokens[0]
        if first[0] == "word" and first not in self._tokens:
            return False  # most values are in none
        return any(reading.may_say(wanted) for reading in self._readings)


def values_in(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name of an argument and each text in it that somebody must have known to write it.

    Numbers can be counted or computed, and texts of `WORDED` words and more are the writer's own.
    """
    for name, value in arguments.items():
        for text in texts_in(value):
            if 0 < len(tokens(text)) < WORDED:
                yield name, text


def is_worded(value: str, told: Iterable[str]) -> bool:
    """Whether it is what was told with words of one's own around it: "phone 6001"."""
    return any(says(value, fact) for fact in told)
