"""What a text says, whatever the spelling: words, numbers, money and dates as comparable tokens.

    >>> says("You get $1,234.50 back on March 3rd, 2026.", "1234.5")
    True
    >>> says("You get $1,234.50 back on March 3rd, 2026.", "2026-03-03")
    True
    >>> says("That makes 15 dollars.", "5 dollars")
    False

What counts as the same: case; spacing and punctuation; `1,234.50` and `1234.5`; money with and
without its currency, but never two currencies; a date in figures or words. `3/4/2026` is read month
first, unless only the day can be first. A number that begins with zeros is a name, not a number.

Texts are a model's, so they are hostile: every pattern here is linear, and nothing beyond `MAX_CHARS`
is looked at.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Sequence

MAX_CHARS = 20_000
"""Characters of one text that are looked at; no message to a person is as long."""

Token = tuple[str, ...]
"""`("word", text)`, `("number", digits, currency or "")` or `("date", year or "", month, day)`."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_TH = r"(?:st|nd|rd|th)?"
_DATES = (
    r"(?P<y1>\d{4})[-/.](?P<m1>\d{1,2})[-/.](?P<d1>\d{1,2})(?!\d)",
    _MONTH.format("m2") + r" (?P<d2>\d{1,2})" + _TH + r"(?:,? (?P<y2>\d{4}))?(?!\w)",
    r"(?P<d3>\d{1,2})" + _TH + r" (?:of )?" + _MONTH.format("m3") + r"(?:,? (?P<y3>\d{4}))?(?!\w)",
    r"(?P<m4>\d{1,2})/(?P<d4>\d{1,2})/(?P<y4>\d{4})(?!\w)",
    r"(?P<d5>\d{1,2})\.(?P<m5>\d{1,2})\.(?P<y5>\d{4})(?!\w)",
)
# Scripts that put no spaces between words: each sign is a token, so that words are found in them.
_UNSPACED = "぀-ヿ㐀-鿿가-힯"
_DATE = re.compile("|".join(_DATES))
_PIECE = re.compile(
    r"(?P<minus>(?<!\w)[-−](?=(?:us\$|[$€£¥₹])? ?\d))"
    r"|(?P<currency>us\$|[$€£¥₹])"
    r"|(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w))"
    rf"|(?P<sign>[%{_UNSPACED}])"
    rf"|(?P<word>[^\W{_UNSPACED}]+(?:'[^\W{_UNSPACED}]+)*)"
)
_CURRENCIES = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars"), "usd"),
    **dict.fromkeys(("€", "eur", "euro", "euros"), "eur"),
    **dict.fromkeys(("£", "gbp", "pound", "pounds"), "gbp"),
    **dict.fromkeys(("¥", "jpy", "yen"), "jpy"),
    **dict.fromkeys(("₹", "inr", "rupee", "rupees"), "inr"),
}


def says(text: str, wanted: str) -> bool:
    """Whether a text holds what is wanted, token after token."""
    return holds(tokens(text), tokens(wanted))


def holds(said: Sequence[Token], wanted: Sequence[Token]) -> bool:
    """Whether the wanted tokens occur in what was said, in a row; no tokens occur nowhere."""
    if not wanted:
        return False
    return any(
        all(_same(said[start + i], token) for i, token in enumerate(wanted))
        for start in range(len(said) - len(wanted) + 1)
    )


def tokens(text: str) -> list[Token]:
    """What a text says.

    Example:
        >>> tokens("Refund -$5.00 by 3 May!")
        [('word', 'refund'), ('number', '-5', 'usd'), ('word', 'by'), ('date', '', '05', '03')]
    """
    plain = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold().replace("’", "'")
    return _with_money(list(_pieces(" ".join(plain.split()))))


def _same(said: Token, wanted: Token) -> bool:
    if said[0] != wanted[0]:
        return False
    if said[0] == "number":
        return said[1] == wanted[1] and (said[2] == wanted[2] or not said[2] or not wanted[2])
    if said[0] == "date":
        return said[2:] == wanted[2:] and wanted[1] in ("", said[1])
    return said == wanted


def _pieces(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if date := _date(text, at):
            token, at = date
            yield token
        elif piece := _PIECE.match(text, at):
            at = piece.end()
            yield _token(piece)
        else:
            at += 1


def _date(text: str, at: int) -> tuple[Token, int] | None:
    """A date that begins here, if the calendar has it."""
    if at and text[at - 1].isalnum():
        return None
    found = _DATE.match(text, at)
    if found is None:
        return None
    form = next(n for n in "12345" if found[f"d{n}"])
    year, month, day = found[f"y{form}"] or "", found[f"m{form}"], int(found[f"d{form}"])
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3]) + 1
    if form == "4" and number > 12:
        number, day = day, number
    try:
        datetime.date(int(year or 2000), number, day)  # 2000 has a 29th of February
    except ValueError:
        return None
    return ("date", year, f"{number:02}", f"{day:02}"), found.end()


def _token(piece: re.Match[str]) -> Token:
    kind, text = str(piece.lastgroup), piece[0]
    if kind == "number":
        return ("number", _figure(text), "") if _is_number(text) else ("word", text)
    if kind == "currency" or text in _CURRENCIES:
        return ("currency", _CURRENCIES[text])
    return ("minus",) if kind == "minus" else ("word", "%" if text == "percent" else text)


def _is_number(text: str) -> bool:
    return text[0] != "0" or text == "0" or text[1] == "."


def _figure(text: str) -> str:
    whole, _, part = text.replace(",", "").partition(".")
    part = part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def _with_money(pieces: list[Token]) -> list[Token]:
    """Signs and currencies go to the number that they stand at; the sign before, the other beside."""
    found: list[Token] = []
    for piece in pieces:
        if piece[0] == "number":
            currency = found.pop()[1] if found and found[-1][0] == "currency" else ""
            minus = "-" if found and found[-1][0] == "minus" and found.pop() else ""
            found.append(("number", minus + piece[1], currency))
        elif piece[0] == "currency" and found and found[-1][0] == "number" and not found[-1][2]:
            found[-1] = ("number", found[-1][1], piece[1])
        else:
            found.append(piece)
    return [("word", token[1]) if token[0] == "currency" else token for token in found]
