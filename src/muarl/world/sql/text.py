"""The tokens of SQL text, as far as one must know them: statements, parameters, first words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
    |(?P<parameter>[:@$]\w+|\?\d*)
    |(?P<word>\w+)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token and where it begins.

    Attributes:
        kind: "quoted", "parameter", "word" or "sign".
        text: As it is written.
        at: Position in the text, in characters.
    """

    kind: str
    text: str
    at: int


class Statement(NamedTuple):
    """One statement, without what ends it.

    Attributes:
        text: From its first to its last token.
        at: Position of its first character in the text it was found in.
    """

    text: str
    at: int


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of `sql`; white space and comments are none."""
    for match in _TOKEN.finditer(sql):
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), match[0], match.start())


def statements(sql: str) -> list[Statement]:
    r"""The statements of `sql`, which semicolons end.

    Example:
        >>> statements("SELECT ';'; -- and\nSELECT 2")
        [Statement(text="SELECT ';'", at=0), Statement(text='SELECT 2', at=19)]
    """
    found: list[Statement] = []
    first: int | None = None
    end = 0
    for token in tokens(sql):
        if (token.kind, token.text) == ("sign", ";"):
            if first is not None:
                found.append(Statement(sql[first:end], first))
            first = None
        else:
            first = token.at if first is None else first
            end = token.at + len(token.text)
    if first is not None:
        found.append(Statement(sql[first:end], first))
    return found


def parameters(sql: str) -> dict[str, int]:
    """Parameters as they are written, `:book`, and where each first stands."""
    found: dict[str, int] = {}
    for token in tokens(sql):
        if token.kind == "parameter":
            found.setdefault(token.text, token.at)
    return found


def first_word(sql: str) -> str:
    """The first word, in capitals, or ""."""
    token = next(tokens(sql), None)
    return token.text.upper() if token and token.kind == "word" else ""


@lru_cache(maxsize=512)
def common_tables(sql: str) -> frozenset[str]:
    """Names, in lower case, that WITH gives to queries in `sql`.

    Example:
        >>> common_tables("WITH late (id) AS (SELECT 1) SELECT count(*) FROM late")
        frozenset({'late'})
    """
    found = [token for token in tokens(sql) if token.text.upper() not in ("NOT", "MATERIALIZED")]
    names = set()
    for index, token in enumerate(found[:-1]):
        if token.text.upper() == "AS" and found[index + 1].text == "(" and index:
            before = index - 1
            if found[before].text == ")":  # its columns
                while before and found[before].text != "(":
                    before -= 1
                before -= 1
            names.add(found[before].text.strip("'\"`[]").lower())
    return frozenset(names)


def trailing_words(sql: str) -> set[str]:
    """Words after the last bracket, in capitals: the options of a table."""
    words: set[str] = set()
    for token in tokens(sql):
        if token.text == ")":
            words = set()
        elif token.kind == "word":
            words.add(token.text.upper())
    return words


def place_in(text: str, at: int) -> tuple[int, int]:
    """1-based line and column of a position."""
    before = text[:at]
    return before.count("\n") + 1, at - before.rfind("\n")
