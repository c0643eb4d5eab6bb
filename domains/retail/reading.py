"""How the expert reads what customers write: intents by their verbs, values by their forms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .goods import CITIES, PRODUCTS, STREETS

EMAIL = re.compile(r"\S+@\S+\.example\b")
NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")
POSTCODE = re.compile(r"\b\d{5}\b")

_INTENTS = {
    "swap": r"\b(swap|exchange|trade|replace)\b",
    "how_much_back": r"\bhow much\b|\brefund be\b",
    "how_many": r"\bhow many\b|\bnumber of\b",
    "cheapest": r"\bcheapest\b|\bleast\b",
    "repair": r"\b(repair|mend|fix)(ed)?\b",
    "cancel": r"\b(cancel|call off)\b",
    "give_back": r"\b(return|send back|take back)\b",
    "move": r"\bhome address is\b|\bmoved\b|\bmoving\b",
    "repay": r"\b(pay|charge|bill)\b",
    "redirect": r"\b(deliver|ship|send|bring)\b",
}
_ORDER = re.compile(r"\bR\d{6}\b")
_REASON = re.compile(r"no longer needed|ordered by mistake|cheaper elsewhere|takes too long")
_PAYMENT = re.compile(r"gift card|wallet|card ending \d{4}|original payment")
_PLACE = re.compile(
    r"(?P<street>\d+ (?:{streets})|PO Box \d+), (?P<city>{cities}) (?P<postcode>\d{{5}})".format(
        streets="|".join(STREETS), cities="|".join(CITIES)
    )
)


def _any_of(values: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, values), key=len, reverse=True))


_VALUES = {value for _, _, ones, _, others in PRODUCTS.values() for value in (*ones, *others)}
_ITEM = re.compile(rf"\b({_any_of(PRODUCTS)})\b")
_WANTED = re.compile(
    rf"\bcheapest (?:{_any_of(_VALUES)})\b|\b(?:{_any_of(_VALUES)})\b|\bcheapest\b"
)


class Place(NamedTuple):
    """An address, as customers write it and as tools take it."""

    text: str
    street: str
    city: str
    postcode: str

    @property
    def arguments(self) -> dict[str, str]:
        """What tools take."""
        return {"street": self.street, "city": self.city, "postcode": self.postcode}


@dataclass
class Wish:
    """What a customer asks for, as far as she says it."""

    intent: str
    order_id: str = ""
    items: tuple[str, ...] = ()
    want: str = ""
    method: str = ""
    reason: str = ""
    place: Place | None = None

    @property
    def item(self) -> str:
        """The items in a word."""
        return " and ".join(self.items)


def order_in(text: str) -> str:
    """The order number in a text, or ""."""
    return _found(_ORDER, text)


def read(text: str) -> Wish | None:
    """The wish in a message; None if there is none."""
    lower = text.lower()
    intent = next((name for name, verbs in _INTENTS.items() if re.search(verbs, lower)), None)
    if intent is None:
        return None
    place = _PLACE.search(text)
    return Wish(
        intent,
        order_id=order_in(text),
        items=tuple(_ITEM.findall(lower)),
        want=_found(_WANTED, lower),
        method=_found(_PAYMENT, lower),
        reason=_found(_REASON, lower),
        place=Place(place[0], **place.groupdict()) if place else None,
    )


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
