"""Calls of SQLite's date functions that would tell the time (law L5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from muarl.world.sql.text import Token, tokens

DATE_FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff")

_BEFORE_MODIFIERS = {"strftime": 2, "timediff": 2}
"""Arguments without which a function means now, if not 1; modifiers follow."""
_HERE_AND_NOW = frozenset(("now", "localtime", "utc"))
_NOW_IN_PARTS = frozenset(("subsec", "subsecond"))
"""They mean now in the place of a date, and the precision in that of a modifier."""


def tells_time(name: str, arguments: Sequence[object]) -> bool:
    """Whether a date function would look at the clock, or at the machine's time zone.

    Args:
        name: The function, in lower case.
        arguments: As SQLite gives them; what is not known yet is None.
    """
    needed = _BEFORE_MODIFIERS.get(name, 1)
    words = [_as_sqlite_reads(argument) for argument in arguments]
    return (
        len(words) < needed
        or not _HERE_AND_NOW.isdisjoint(words)
        or not _NOW_IN_PARTS.isdisjoint(words[:needed])
    )


def clock_in(sql: str) -> tuple[str, int] | None:
    """Name and position of the first call in `sql` that is written so that it tells the time.

    Example:
        >>> clock_in("SELECT date(:day), time('now')")
        ('time', 19)
    """
    found = list(tokens(sql))
    for index, (token, following) in enumerate(pairwise(found)):
        name = token.text.strip('"`[]').lower()
        if token.kind in ("word", "quoted") and name in DATE_FUNCTIONS and following.text == "(":
            literals = [_literal(argument) for argument in _arguments(found, index + 2)]
            if tells_time(name, literals):
                return name, token.at
    return None


def _as_sqlite_reads(argument: object) -> str:
    """An argument as C reads it: bytes are text too, and a NUL ends it."""
    text = argument.decode("latin-1") if isinstance(argument, bytes) else str(argument)
    return text.partition("\0")[0].strip().lower()


def _arguments(found: Sequence[Token], begin: int) -> Iterator[list[Token]]:
    """The tokens of each argument of a call, whose first stands at `begin`."""
    depth = 0
    argument: list[Token] = []
    for token in islice(found, begin, None):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or (depth == 0 and token.text == ","):
            if argument:
                yield argument
            argument = []
            if depth < 0:
                return
        else:
            argument.append(token)


def _literal(argument: Sequence[Token]) -> str | None:
    """The text that an argument is, if it is nothing else."""
    if len(argument) == 1 and argument[0].kind == "quoted" and argument[0].text[0] in "'\"":
        return argument[0].text[1:-1]
    return None
