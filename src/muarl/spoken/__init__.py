"""What a text says, whatever the spelling: words, numbers, money and dates as comparable tokens.

    >>> says("You get $1,234.50 back on March 3rd, 2026.", "1234.5")
    True
    >>> says("You get $1,234.50 back on March 3rd, 2026.", "2026-03-03")
    True
    >>> says("That makes 15 dollars.", "5 dollars"), says("It weighs 5kg.", "5")
    (False, False)

What counts as the same: case; spacing and punctuation; `1,234.50`, `1.234,50` and `1234.5`; money with
and without its currency, but never two currencies; a date in figures or words. `3/4/2026` is read month
first, unless only the day can be first. A number that begins with zeros is a name, not a number.

What is bound to something, as `5` is in `5kg`, `5-7`, `5:30`, `W-5` and `5%`, says nothing by itself.
Where a text must not say a thing, `may_say` asks whether it could be taken to.

Texts are a model's, so they are hostile: every pattern here is linear, and nothing beyond `MAX_CHARS`
is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muarl.spoken.figures import lists_apart
from muarl.spoken.money import same, with_units
from muarl.spoken.pieces import Piece, Token, cut
from muarl.spoken.signs import folded, is_reversed, plain

__all__ = [
    "MAX_CHARS",
    "QUESTION_MARKS",
    "Reading",
    "Token",
    "may_say",
    "read",
    "readings",
    "says",
    "tokens",
    "unreadable",
]

MAX_CHARS = 20_000
"""Characters of one text that are looked at; no message to a person is as long."""

QUESTION_MARKS = ("?", "？", "؟")
"""Latin, East Asian, Arabic."""

_UNSURE = 6
"""Tokens before a cut that may go on behind it: `$5 | million`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it was read.

    Attributes:
        tokens: What it says.
        bound: For each token, whether it belongs to the one before.
    """

    tokens: tuple[Token, ...]
    bound: tuple[bool, ...]

    def says(self, wanted: Reading) -> bool:
        """Whether the wanted tokens occur, in a row and unbound; no tokens occur nowhere."""
        return any(not self._is_cut(at, wanted) for at in self._found(wanted, perhaps=False))

    def may_say(self, wanted: Reading) -> bool:
        """Whether the wanted tokens occur in a row, bound or not."""
        return any(True for _ in self._found(wanted, perhaps=True))

    def _found(self, wanted: Reading, *, perhaps: bool) -> list[int]:
        size = len(wanted.tokens)
        return [
            start
            for start in range(len(self.tokens) - size + 1 if size else 0)
            if all(
                same(self.tokens[start + i], token, perhaps=perhaps)
                for i, token in enumerate(wanted.tokens)
            )
        ]

    def _is_cut(self, start: int, wanted: Reading) -> bool:
        end = start + len(wanted.tokens)
        return self.bound[start] or (end < len(self.bound) and self.bound[end])


def read(text: str) -> Reading:
    """Read a text; of one that is too long, the beginning that can be read for sure."""
    return _read(plain(text[:MAX_CHARS]), len(text) > MAX_CHARS)


def says(text: str, wanted: str) -> bool:
    """Whether a text says what is wanted. In doubt it does not."""
    return read(text).says(read(wanted))


def may_say(text: str, wanted: str) -> bool:
    """Whether a text can be taken to say what is wanted. In doubt it can.

    Letters that look alike are the same here, what is bound counts as if it were free, and what may
    be one number or several is read in both ways.

    Example:
        >>> may_say("Your ｓеcret is 5-7", "secret"), may_say("Pay 5-7 dollars", "$7")
        (True, True)
    """
    if any(reading.may_say(read(wanted)) for reading in readings(text)):
        return True
    looks, sought = folded(text[:MAX_CHARS]), _read(folded(wanted))
    return any(reading.may_say(sought) for reading in _readings(looks))


def readings(text: str) -> list[Reading]:
    """The ways to read a text: more than one where `1,2` may be one number, or two."""
    return _readings(plain(text[:MAX_CHARS]))


def unreadable(text: str) -> str:
    """Why it cannot be told what a text does not say; "" where it can."""
    if len(text) > MAX_CHARS:
        return f"is longer than {MAX_CHARS:,} characters"
    return "is shown in another order than it is written in" if is_reversed(text) else ""


def tokens(text: str) -> list[Token]:
    """What a text says.

    Example:
        >>> tokens("Refund -$5.00 by 3 May!")
        [('word', 'refund'), ('number', '-5', 'usd'), ('word', 'by'), ('date', '', '05', '03')]
    """
    return list(read(text).tokens)


def _readings(text: str) -> list[Reading]:
    return [_read(way) for way in dict.fromkeys((text, lists_apart(text)))]


def _read(text: str, is_beginning: bool = False) -> Reading:
    if is_beginning:
        text = re.sub(r"\S*$", "", text)
    pieces: Sequence[Piece] = with_units(text, cut(text))
    if is_beginning:
        pieces = pieces[:-_UNSURE]
    return Reading(tuple(piece.token for piece in pieces), tuple(piece.bound for piece in pieces))
