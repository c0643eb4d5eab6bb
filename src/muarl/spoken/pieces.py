"""A plain text in pieces: words, numbers, dates and signs, and which of them belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muarl.spoken.dates import date_at
from muarl.spoken.figures import figure

Token = tuple[str, ...]
"""`("word", text)`, `("number", digits, unit)` or `("date", year or "", month, day)`; the unit of a
number is a currency, "" or `THINGS`."""

# Scripts that put no spaces between words: each sign is a token, so that words are found in them.
_UNSPACED = "぀-ヿ㐀-鿿가-힯"
_SYMBOLS = "$¢-¥֏؋৲৳৻૱௹฿៛₠-⃏"
_LETTERS = rf"(?:[^\W\d{_UNSPACED}]|[\u0300-\u036f])"
_WORD = rf"(?:[^\W{_UNSPACED}]|[\u0300-\u036f])+"
_PIECE = re.compile(
    rf"(?P<minus>(?<!\w)-(?=(?:[a-z]{{0,3}}[{_SYMBOLS}])? ?[0-9]))"
    rf"|(?P<currency>(?<!\w)[a-z]{{1,3}}\$|[{_SYMBOLS}])"
    r"|(?P<fraction>(?:[0-9]+ )?[0-9]+/[0-9]+(?![0-9/]))"
    rf"|(?P<name>[0-9]+{_LETTERS}+[0-9]\w*)"
    r"|(?P<number>[0-9]+(?:[.,'_][0-9]+)*)"
    r"|(?P<after>(?<=[0-9])[+‰°′″])"
    rf"|(?P<sign>[%{_UNSPACED}])"
    rf"|(?P<word>{_WORD}(?:'{_WORD})*)"
)
_POWERS = set("十百千万亿兆億萬십백천만억조")

_BETWEEN_DIGITS = set("-.,:/×*+^'_~=—·&@\\")
_BESIDE_A_DIGIT = set("-.^+&@")
_DASHES = set("-—")


@dataclass(slots=True)
class Piece:
    """A token where it stands.

    Attributes:
        token: What is said; besides the kinds of `Token`, `("currency", name)` and `("minus",)`.
        start: Where it begins in the text.
        end: Where it ends.
        bound: It belongs to the piece before: `kg` in `5kg`, `7` in `5-7`.
        written: A number as it is written.
    """

    token: Token
    start: int
    end: int
    bound: bool = False
    written: str = ""


def cut(text: str) -> list[Piece]:
    """The pieces of a plain text (see `muarl.spoken.signs.plain`)."""
    found: list[Piece] = []
    at = 0
    while at < len(text):
        piece = _piece(text, at)
        if piece is None:
            at += 1
            continue
        at = piece.end
        last = found[-1] if found else None
        if last is not None and piece.token == ("minus",) and _is_between(text, last, piece):
            continue
        if last is not None and (between := _binding(text, found, piece)) is not None:
            piece.bound = True
            if between:
                found.append(Piece(("word", between), last.end, piece.start, bound=True))
        found.append(piece)
        if piece.token[0] == "word" and len(piece.token[1]) > 2 and piece.token[1].endswith("'s"):
            piece.token, piece.end = ("word", piece.token[1][:-2]), piece.end - 2
            found.append(Piece(("word", "'s"), piece.end, at))
    return found


def gap(text: str, left: Piece, right: Piece) -> str:
    """What stands between two pieces."""
    return text[left.end : right.start]


def _piece(text: str, at: int) -> Piece | None:
    if found := date_at(text, at):
        return Piece(found[0], at, found[1])
    match = _PIECE.match(text, at)
    if match is None:
        return None
    kind, written = str(match.lastgroup), match[0]
    token: Token = ("word", written)
    if kind in ("currency", "minus"):
        token = (kind, written) if kind == "currency" else (kind,)
    elif kind == "number" and (digits := figure(written)) is not None:
        token = ("number", digits, "")
    return Piece(token, at, match.end(), written=written)


def _is_between(text: str, last: Piece, minus: Piece) -> bool:
    """Whether a dash stands between two numbers, `5 - 7`, and is no sign of the second."""
    return last.token[0] == "number" and text[minus.end] == " " and gap(text, last, minus) == " "


def _binding(text: str, found: list[Piece], piece: Piece) -> str | None:
    """How a piece is bound to the one before: by a sign that counts, by nothing (""), or not (None)."""
    last = found[-1]
    between = gap(text, last, piece)
    before = text[last.end - 1].isdecimal()
    after = text[piece.start].isdecimal() or piece.token[0] == "currency"
    if not between:
        free = piece.token[0] in ("currency", "minus") or last.token[0] in ("currency", "minus")
        if free or not before:  # of an ISO date, "T" is the last sign
            return None
        sign = text[piece.start]
        return None if re.match(f"[{_UNSPACED}]", sign) and sign not in _POWERS else ""
    if " " in between:
        if between == " " and before and "/" in piece.written:
            return ""
        numbers = last.token[0] == "number" and before and after
        if not numbers:
            return None
        if between == " ":
            return "" if _is_grouped(last, piece) else None
        # "41731 - $5" is no range: its ends have both a currency in front, or the first one has.
        money = [one.token[0] == "currency" for one in (*found[-2:-1], piece)]
        dash = set(between.strip()) <= _DASHES and (money[0] or not money[-1])
        return "" if dash else None
    signs = [sign for sign in between if sign in (_BETWEEN_DIGITS if after else _BESIDE_A_DIGIT)]
    if not signs or not (before or after):
        return None
    if before and after:
        return "" if signs[0] in _DASHES else signs[0]
    return "" if any(sign in _BESIDE_A_DIGIT for sign in signs) else None


def _is_grouped(last: Piece, piece: Piece) -> bool:
    """Whether `1 234` may be one number."""
    whole = re.fullmatch(r"[0-9]{1,3}", last.written) if not last.bound else len(last.written) == 3
    return bool(whole) and re.match(r"[0-9]{3}(?![0-9])", piece.written) is not None
