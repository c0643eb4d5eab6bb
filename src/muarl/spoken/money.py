"""What a number is a number of: signs, currencies, powers of ten and units that stand beside it."""

from __future__ import annotations

import re

from muarl.spoken.figures import times_ten_to
from muarl.spoken.pieces import Piece, Token, gap

THINGS = "things"
"""Unit of a number of something that is no money: days, kilograms, items."""

_DOLLARS = {
    **dict.fromkeys(("$", "us$", "usd$"), "usd"),
    **dict.fromkeys(("c$", "ca$", "can$", "cad$"), "cad"),
    **dict.fromkeys(("a$", "au$", "aud$"), "aud"),
    **dict.fromkeys(("nz$", "nzd$"), "nzd"),
    **dict.fromkeys(("hk$", "hkd$"), "hkd"),
    **dict.fromkeys(("s$", "sg$", "sgd$"), "sgd"),
    **dict.fromkeys(("nt$", "twd$"), "twd"),
    "r$": "brl",
    "mx$": "mxn",
}
_CURRENCIES = {
    **dict.fromkeys(("dollar", "dollars", "buck", "bucks"), "usd"),
    **dict.fromkeys(("€", "euro", "euros"), "eur"),
    **dict.fromkeys(("£", "pound", "pounds", "quid"), "gbp"),
    **dict.fromkeys(("¥", "yen"), "jpy"),
    **dict.fromkeys(("₹", "rupee", "rupees"), "inr"),
    **dict.fromkeys(("franc", "francs"), "chf"),
    **dict.fromkeys(("yuan", "rmb", "renminbi"), "cny"),
    **dict.fromkeys(("peso", "pesos"), "peso"),
    **dict.fromkeys(("¢", "cent", "cents"), "cent"),
    **dict.fromkeys(("pence", "penny"), "penny"),
    "₩": "krw",
    "₽": "rub",
    "₺": "lira",
    "lira": "lira",
    "₪": "ils",
    "฿": "thb",
    "₿": "btc",
}
_CODE = re.compile(
    "usd|eur|gbp|jpy|inr|cad|aud|nzd|hkd|sgd|twd|chf|cny|sek|nok|dkk|pln|czk|huf|brl|mxn|zar|krw|thb"
    "|ils|rub|aed|sar|idr|myr|vnd|clp|ars|btc|eth"
)
_OF = {
    "canadian": "cad",
    "australian": "aud",
    "zealand": "nzd",
    "kong": "hkd",
    "singapore": "sgd",
    "taiwan": "twd",
    "us": "usd",
    "american": "usd",
    "swiss": "chf",
    "mexican": "mxn",
}
"""Last word of a country's name to the currency that is its own."""
_OF_A_PEOPLE = ("an", "ese", "ish")
_PARTS = {"cent": {"usd", "eur", "cad", "aud", "nzd", "hkd", "sgd"}, "penny": {"gbp"}}
"""Hundredth part of what it is."""

_POWERS = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "grand": 3,
    "thousands": 3,
    "millions": 6,
    "billions": 9,
}
_SHORT_POWERS = {"k": 3, "bn": 9}
_MULTIPLES = {"lakh", "lakhs", "crore", "crores", "dozen"}
_SHORT_MULTIPLES = {"mn", "mio", "mrd", "m", "b", "t"}
_AND_A_PART = ("and a half", "and a quarter")
_PERCENT = {"%", "percent", "pct"}
_MINUS = {"minus", "negative"}
_UNIT = re.compile(
    "s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|nights?|weeks?|months?|years?|am|pm|o'clock"
    "|business|working|k?g|mg|t|lbs?|oz|kilos?|grams?|tons?|[kcm]?m|mi|miles?|ft|foot|feet|inch(?:es)?"
    "|met(?:er|re)s?|m?l|lit(?:er|re)s?|[kmgt]b|[mg]hz|k?wh?|v|mah|degrees?|items?|pieces?|units?"
    "|orders?|stars?|times?|points?|people|persons?|users?|customers?|cop(?:y|ies)|box(?:es)?|bags?"
    "|packs?|sets?|pairs?|steps?|options?|pages?|books?|tickets?|seats?|guests?|rooms?|percentage"
)
_TIGHT = ("", " ")
_NEAR = ("", " ", "-")


def with_units(text: str, pieces: list[Piece]) -> list[Piece]:
    """The pieces of a text, each number with what it is a number of.

    A sign or currency in front goes to the number that follows, a currency behind to the number
    before; powers of ten are multiplied out; percent and multiples are bound to their number.
    """
    out: list[Piece] = []
    for index, piece in enumerate(pieces):
        kind = piece.token[0]
        if kind == "number":
            out.append(_signed(text, out, piece))
        elif kind == "currency":
            following = pieces[index + 1] if index + 1 < len(pieces) else None
            forward = following is not None and following.start == piece.end
            name = _DOLLARS.get(piece.token[1]) or _CURRENCIES.get(piece.token[1], piece.token[1])
            number = following is not None and following.token[0] in ("number", "minus")
            piece.token = ("currency", name)
            if (forward and number) or not _take_currency(text, out, piece):
                out.append(piece)
        elif kind == "word" and _is_currency(piece.token[1]):
            piece.token = ("currency", _CURRENCIES.get(piece.token[1], piece.token[1]))
            if not _take_currency(text, out, piece):
                out.append(piece)
        elif kind != "word" or not _taken(text, out, piece):
            out.append(piece)
    for piece in out:
        if piece.token[0] in ("currency", "minus"):
            piece.token = ("word", piece.token[-1])
    return out


def _is_currency(word: str) -> bool:
    return word in _CURRENCIES or _CODE.fullmatch(word) is not None


def _signed(text: str, out: list[Piece], piece: Piece) -> Piece:
    """A number with the sign and the currency in front of it."""
    minus = unit = ""
    while out and gap(text, out[-1], piece) in _TIGHT:
        what = out[-1].token
        if what[0] == "currency" and not unit:
            unit = what[1]
        elif not minus and (what == ("minus",) or (what[0] == "word" and what[1] in _MINUS)):
            minus = "-"
        else:
            break
        first = out.pop()
        piece.start, piece.bound = first.start, first.bound
    piece.token = ("number", minus + piece.token[1], unit)
    return piece


def _take_currency(text: str, out: list[Piece], piece: Piece) -> bool:
    """Give a currency to the number before it, if there is one that wants it."""
    name = piece.token[1]
    at, last = len(out) - 1, piece
    words: list[str] = []
    while at >= 0 and len(words) < 3 and gap(text, out[at], last) in _NEAR:
        if out[at].token[0] == "number":
            break
        if out[at].token[0] != "word":
            return False
        words.insert(0, out[at].token[1])
        last, at = out[at], at - 1
    else:
        return False
    number, country = out[at], words[-1] if words else ""
    if words == ["per"] and name == "cent":
        del out[at + 1 :]
        out[at].token = (*out[at].token[:2], out[at].token[2] or THINGS)
        out.append(Piece(("word", "%"), last.start, piece.end, bound=True))
        return True
    if country in _OF or country.endswith(_OF_A_PEOPLE):
        name = _OF.get(country, f"{country} {name}")
    elif words:
        return False
    unit = number.token[2]
    # "$5 CAD" says whose dollars; "5 dollars 7" is said of two numbers.
    if unit and not (unit == "usd" and text[number.start : number.start + 1] == "$"):
        return False
    if not unit and not words and name in _PARTS and _add_part(text, out, piece, name):
        return True
    del out[at + 1 :]
    number.token, number.end = (*number.token[:2], name), piece.end
    return True


def _add_part(text: str, out: list[Piece], piece: Piece, name: str) -> bool:
    """Let `5 dollars and 50 cents` be 5.50 dollars; the last of what was read is the 50."""
    part, before = out[-1], out[:-1]
    joined = bool(before) and before[-1].token == ("word", "and")
    whole = before[-2 if joined else -1] if len(before) > joined else None
    if whole is None or whole.token[0] != "number" or whole.token[2] not in _PARTS[name]:
        return False
    between = text[whole.end : part.start]
    if between not in (" ", ", ", " and ", ", and ") or not part.token[1].isdecimal():
        return False
    if not whole.token[1].lstrip("-").isdecimal() or int(part.token[1][:3]) > 99:
        return False
    cents = f"{int(part.token[1][:3]):02}".rstrip("0")
    del out[len(before) - 1 - joined + 1 :]
    digits = f"{whole.token[1]}.{cents}" if cents else whole.token[1]
    whole.token, whole.end = ("number", digits, whole.token[2]), piece.end
    return True


def _taken(text: str, out: list[Piece], piece: Piece) -> bool:
    """Let a word say more of the number before it; whether nothing is left to be said of the word."""
    word = piece.token[1]
    if not out or out[-1].token[0] != "number":
        return False
    number, between = out[-1], gap(text, out[-1], piece)
    digits, unit = number.token[1:]
    if between not in _NEAR:
        return False
    power = _POWERS.get(word) or (_SHORT_POWERS.get(word) if not between or unit else None)
    if power:
        minus = digits[: digits.startswith("-")]
        scaled = minus + times_ten_to(digits.removeprefix("-"), power)
        number.token, number.end = ("number", scaled, unit), piece.end
        return True
    if word in _PERCENT:
        piece.token, piece.bound = ("word", "%"), True
    elif (
        word in _MULTIPLES
        or (word in _SHORT_MULTIPLES and unit)
        or text.startswith(_AND_A_PART, piece.start)
    ):
        piece.bound = True
    if not unit and (_UNIT.fullmatch(word) or word in _PERCENT):
        number.token = ("number", digits, THINGS)
    return False


def same(said: Token, wanted: Token, *, perhaps: bool = False) -> bool:
    """Whether one token says the other; `perhaps`: whether it may be taken for it."""
    if said[0] != wanted[0]:
        return False
    if said[0] == "number":
        units = {said[2], wanted[2]}
        fits = len(units) == 1 or "" in units
        if said[2] == "" or wanted[2] == "" or not perhaps:
            return said[1] == wanted[1] and fits
        return said[1] == wanted[1] and (fits or (said[2].endswith("$") and wanted[2] == "usd"))
    if said[0] == "date":
        return said[2:] == wanted[2:] and wanted[1] in ("", said[1])
    return said == wanted
