"""Dates, in figures or words."""

from __future__ import annotations

import datetime
import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_TH = r"(?:st|nd|rd|th)?"
_DATES = (
    # What follows in ISO 8601 is a time.
    r"(?P<y1>\d{4})[-/.](?P<m1>\d{1,2})[-/.](?P<d1>\d{1,2})(?:t(?=\d\d:)|(?!\w))",
    _MONTH.format("m2") + r" (?P<d2>\d{1,2})" + _TH + r"(?:,? (?P<y2>\d{4}))?(?!\w)",
    r"(?P<d3>\d{1,2})" + _TH + r" (?:of )?" + _MONTH.format("m3") + r"(?:,? (?P<y3>\d{4}))?(?!\w)",
    r"(?P<m4>\d{1,2})/(?P<d4>\d{1,2})/(?P<y4>\d{4})(?!\w)",
    r"(?P<d5>\d{1,2})\.(?P<m5>\d{1,2})\.(?P<y5>\d{4})(?!\w)",
)
_DATE = re.compile("|".join(_DATES), re.ASCII)

Date = tuple[str, str, str, str]
"""`("date", year or "", month, day)`."""


def date_at(text: str, at: int) -> tuple[Date, int] | None:
    """A date that begins at a place of a plain text, if the calendar has it, and where it ends."""
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
