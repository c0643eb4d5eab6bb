"""How the expert reads what travellers write: intents by their verbs, values by their forms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from .places import AIRPORTS_OF, FIRST_NAMES, LAST_NAMES

TRAVELLER = re.compile(r"\bT\d{5}\b")
BORN = re.compile(r"\b\d{4}-\d\d-\d\d\b")

_INTENTS = {
    "lost_bag": r"\blost\b",
    "ask_price": r"\bhow much\b|\bwhat would it cost\b|\bprice\b",
    "complain": r"\b(compensation|make up for)\b",
    "rename": r"\b(spelt|spelling|name)\b",
    "book": r"\bbook\b|\bget me\b|\bi need the\b",
    "cancel": r"\b(cancel|call off)\b",
    "bags": r"\bmore bags?\b",
    "move": r"\bflight on\b",
    "upgrade": r"\b(into|up to|in) (economy|comfort|business)\b",
}
_RESERVATION = re.compile(r"\b(?=[A-Z0-9]*\d)[A-Z]{2}[A-Z0-9]{4}\b")
_DAY = re.compile(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d\b")
_CABIN = re.compile(r"\b(economy|comfort|business)\b")
_CHOICE = re.compile(r"\b(cheapest|earliest)\b")
_CARD = re.compile(r"\b(gift card|card ending \d{4})\b")
_BAGS = re.compile(r"\b(no|\d+) (?:more )?bags?\b")


def _any_of(values: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, values), key=len, reverse=True))


CODES = {city: code for cities in AIRPORTS_OF.values() for code, city in cities.items()}
_CITY = re.compile(rf"\b({_any_of(CODES)})\b")
# A name that is spelt wrongly begins like one.
_NAME = re.compile(rf"\b(?:{_any_of(FIRST_NAMES)})\w? (?:{_any_of(LAST_NAMES)})\w?\b")


@dataclass
class Wish:
    """What a traveller asks for, as far as she says it.

    Attributes:
        intent: What it is.
        text: All that she said.
        reservation_id: The code of the reservation, "" if she does not say it.
        cities: Cities, in the order in which she names them.
        day: A day, as she writes it.
        cabin: A cabin.
        choice: "cheapest" or "earliest".
        card: What she pays with.
        bags: Bags, as she writes it.
        names: People.
    """

    intent: str
    text: str
    reservation_id: str
    cities: list[str]
    day: str
    cabin: str
    choice: str
    card: str
    bags: str
    names: list[str]

    @property
    def date(self) -> str:
        """The day as tools take it."""
        return datetime.strptime(self.day, "%d %B %Y").date().isoformat()  # noqa: DTZ007

    @property
    def count(self) -> int:
        """How many bags."""
        number = self.bags.split()[0] if self.bags else "no"
        return 0 if number == "no" else int(number)

    @property
    def by_certificate(self) -> bool:
        """Whether a certificate pays first."""
        return "certificate and " in self.text


def read(text: str) -> Wish | None:
    """The wish in a message; None if there is none."""
    lower = text.lower()
    intent = next((name for name, verbs in _INTENTS.items() if re.search(verbs, lower)), None)
    if intent is None:
        return None
    return Wish(
        intent,
        text,
        reservation_id=code_in(text),
        cities=_CITY.findall(text),
        day=_found(_DAY, text),
        cabin=_found(_CABIN, lower),
        choice=_found(_CHOICE, lower),
        card=_found(_CARD, lower),
        bags=_found(_BAGS, lower),
        names=_NAME.findall(text),
    )


def code_in(text: str) -> str:
    """The code of a reservation in a text, or ""."""
    return _found(_RESERVATION, text)


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
