"""Numbers in figures, however their digits are grouped."""

from __future__ import annotations

import re

_POINT = re.compile(
    r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:'[0-9]{3})+|[0-9]{1,3}(?:_[0-9]{3})+"
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?"
)
_COMMA = re.compile(
    r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{1,2}|[0-9]{1,3}(?:\.[0-9]{3}){2,}|[0-9]+,[0-9]{2}"
)

_RUN = re.compile("(?<![0-9])[0-9]+(?:[.,'_/][0-9]+)+")


def figure(written: str) -> str | None:
    """A number in plain figures; None for what is a name, or could be read in two ways.

    `1,234` is read as one thousand and more, `1.234` as one and less than two. What begins with
    zeros is a name.

    Example:
        >>> [figure(text) for text in ("1,234.50", "1.234,50", "1'234", "5,50", "1,2", "007")]
        ['1234.5', '1234.5', '1234', '5.5', None, None]
    """
    if _POINT.fullmatch(written):
        plain = re.sub("[,'_]", "", written)
    elif _COMMA.fullmatch(written):
        plain = written.replace(".", "").replace(",", ".")
    else:
        return None
    whole, _, part = plain.partition(".")
    if whole[0] == "0" and whole != "0":
        return None
    part = part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def lists_apart(text: str) -> str:
    """A plain text in which what may be a list of numbers is one, with spaces.

    Example:
        >>> lists_apart("[1,2,3], 12,34, 1,234.50 and 1/2")
        '[1 2 3], 12 34, 1,234.50 and 1 2'
    """
    return _RUN.sub(_apart, text)


def _apart(run: re.Match[str]) -> str:
    clear = figure(run[0]) is not None and not re.fullmatch(r"[0-9]+,[0-9]{2}", run[0])
    return run[0] if clear else re.sub("[.,'_/]", " ", run[0])


def times_ten_to(number: str, power: int) -> str:
    """A number in figures, so many zeros larger.

    Example:
        >>> times_ten_to("1.5", 3)
        '1500'
    """
    whole, _, part = number.partition(".")
    digits = (whole + part[:power].ljust(power, "0")).lstrip("0") or "0"
    return f"{digits}.{part[power:]}" if part[power:] else digits
