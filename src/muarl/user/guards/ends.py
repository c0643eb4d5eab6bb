"""When she ends, and whether she sticks to what she came for."""

from __future__ import annotations

import re

from muarl.spoken import QUESTION_MARKS, says
from muarl.user.guards.said import Said

_EMPTY_EXCHANGES = 2
"""Exchanges in which nobody asked or told anything, after which she should have left."""
_REFUSED = re.compile(
    r"\b(?:can ?not|can't|unable|won't be able|not (?:able|possible|allowed|permitted|eligible))\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:changed my mind|on second thou?ghts?|actually,? (?:no|i(?:'d| would)? (?:rather|want))"
    r"|i(?:'d| would) rather (?!not\b)|forget (?:that|it), i)\b",
    re.IGNORECASE,
)


def early_stop(said: Said) -> str:
    """She ends although something she came for was neither dealt with nor refused."""
    if not said.stop:
        return ""
    if not said.heard:
        return "ended the dialogue before it began"
    if any(_REFUSED.search(text.replace("’", "'")) for text in said.heard):
        return ""
    spoken = (*said.heard, *said.before, said.text)
    for number, choices in enumerate(said.contract.requests, start=1):
        dealt_with = any(
            all(any(says(text, value) for text in spoken) for value in values) for values in choices
        )
        if not dealt_with:
            return f"ended before request {number} was dealt with"
    return ""


def late_stop(said: Said) -> str:
    """She goes on although nothing has been asked or told for a while."""
    n = _EMPTY_EXCHANGES
    if said.stop or len(said.heard) <= n or len(said.before) <= n:
        return ""
    texts = (*said.heard[-n - 1 :], *said.before[-n:], said.text)
    if any(_asks(text) or _tells(said, text) for text in texts):
        return ""
    return f"goes on after {n} exchanges in which nothing was asked or told"


def change_of_mind(said: Said) -> str:
    """She wants something else than she came for, and nothing says that she may."""
    for value in said.contract.others:
        if says(said.text, value) and not said.heard_says(value):
            return f"turns to {value!r}, which she does not want"
    if said.may_change or said.contract.may_change:
        return ""
    found = _CHANGE.search(said.text.replace("’", "'"))
    if found is None or not said.heard or any(_CHANGE.search(text) for text in said.contract.known):
        return ""
    return f"changes her mind: {found[0]!r}"


def _asks(text: str) -> bool:
    return any(mark in text for mark in QUESTION_MARKS)


def _tells(said: Said, text: str) -> bool:
    return any(says(text, fact.value) for fact in said.contract.facts) or any(
        sign.isdigit() for sign in text
    )
