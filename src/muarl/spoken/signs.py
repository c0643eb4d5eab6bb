"""The signs of a text: what nobody sees is taken out, and what means the same is made the same."""

from __future__ import annotations

import re
import unicodedata

# Default-ignorable signs besides format characters: fillers, joiners, variation selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_GROUPED = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_BULLET = re.compile(r"(?m)^\s*[-*•] +")
_EMPHASIS = re.compile(r"(?<![\w*`~])[*`_~]+|[*`_~]+(?![\w*`~])")
_INSIDE_WORDS = re.compile(r"[*`~|]+")
_SAME = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇", "'"),
        **dict.fromkeys("‐‑‒–−﹣－", "-"),
        "٫": ".",
        "٬": ",",
        "™": " ",
        "℠": " ",
        "№": "# ",
        "⁄": "/",
        "∕": "/",
    }
)
# Letters of other alphabets that look like Latin ones, in lower case.
_LATIN = str.maketrans(
    {
        **dict(zip("аеорсухіјѕԁһӏԛԝ", "aeopcyxijsdhlqw", strict=True)),
        **dict(zip("αορνκιτυχγε", "aopvkituxye", strict=True)),
        "ո": "n",
        "օ": "o",
        "ս": "u",
        "հ": "h",
        "ɡ": "g",
        "ı": "i",
        "ß": "ss",
    }
)


def plain(text: str) -> str:
    """A text in lower case and plain figures, on one line, without emphasis and unseen signs.

    Example:
        >>> plain("Sec\u00adret:  **ＦＵＬＬ** ５½, 10²")
        'secret: full 5 1/2, 10^2'
    """
    if not text.isascii():
        text = _of_unicode(text)
    text = _BULLET.sub("", text.casefold())
    return " ".join(_EMPHASIS.sub("", text).split())


def folded(text: str) -> str:
    """What a text may be taken for: accents, alphabets and marks inside of words do not count."""
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", _of_unicode(text).casefold())
        text = "".join(c for c in apart if not unicodedata.category(c).startswith("M"))
        text = unicodedata.normalize("NFC", text.translate(_LATIN))
    return plain(_INSIDE_WORDS.sub("", text))


def is_reversed(text: str) -> bool:
    """Whether it holds signs that let a screen show it in another order than it has."""
    return "\u202d" in text or "\u202e" in text


def _of_unicode(text: str) -> str:
    seen = "".join(c for c in _UNSEEN.sub("", text) if unicodedata.category(c) != "Cf")
    told = _GROUPED.sub("", "".join(_apart(seen)).translate(_SAME))
    even = unicodedata.normalize("NFKC", told).translate(_SAME)
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in even)


def _apart(text: str) -> list[str]:
    """Its signs, with a mark where a raised figure or a fraction would run into a number."""
    signs: list[str] = []
    for before, sign in zip(" " + text, text, strict=False):
        if before.isdecimal() and unicodedata.category(sign) == "No":
            signs.append(" " if "<fraction>" in unicodedata.decomposition(sign) else "^")
        signs.append(sign)
    return signs
