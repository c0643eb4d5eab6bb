"""What she tells: nothing made up, nothing too early, nothing that she must not or cannot know."""

from __future__ import annotations

import re

from muarl.spoken import may_say, says
from muarl.user.guards.said import Said

_IDENTIFIER = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|#?\w[\w./:-]{0,62}\w|\w")
_SMALL = 100
"""Numbers below are counts and sizes as often as they name something."""
_PARROTED = 6
_GOAL_PARROTED = 12
"""Words in a row that she would not choose by chance."""


def invented_fact(said: Said) -> str:
    """She names something that nobody told her."""
    sources = (
        *said.contract.known,
        *said.heard,
        *said.before,
        *(fact.value for fact in said.contract.facts),
    )
    for found in _IDENTIFIER.findall(said.text):
        named = "@" in found or any(sign.isdigit() for sign in found)
        if not named or (found.isdecimal() and int(found[:9]) < _SMALL):
            continue
        if not any(says(source, found) or _has(source, found) for source in sources):
            return f"names {found!r}, which she cannot know"
    return ""


def _has(source: str, name: str) -> bool:
    """Whether a text has a name, whatever signs stand in it: `W-41` is `w41`."""
    return _bare(name) in {_bare(other) for other in _IDENTIFIER.findall(source)}


def _bare(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def premature_disclosure(said: Said) -> str:
    """She tells a fact before she is asked for it."""
    for fact in said.contract.facts:
        if said.on_request(fact) and may_say(said.text, fact.value) and not said.is_asked(fact):
            return f"tells {fact.id} before it is asked for"
    return ""


def leak(said: Said) -> str:
    """She tells what she is to keep, what only the solution knows, or what she was instructed."""
    for fact in said.contract.facts:
        if fact.disclose == "never" and may_say(said.text, fact.value):
            other = any(
                f.value == fact.value and f.disclose != "never" for f in said.contract.facts
            )
            if not other and not said.heard_says(fact.value):
                return f"tells {fact.id}, which she does not know"
    for value in said.contract.secret:
        if may_say(said.text, value) and not said.heard_says(value):
            return f"says {value!r}, which only the solution has"
    words = _words(said.text)
    for source, run in ((said.instructions, _PARROTED), (said.contract.known[0], _GOAL_PARROTED)):
        if copied := _shared_run(words, _words(source), run):
            return f"repeats her instructions: {copied!r}"
    return ""


def forbidden(said: Said) -> str:
    """She says what the task forbids her."""
    for text in said.contract.forbidden:
        if may_say(said.text, text):
            return f"says {text!r}, which the task forbids"
    return ""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _shared_run(words: list[str], source: list[str], length: int) -> str:
    runs = {tuple(source[i : i + length]) for i in range(len(source) - length + 1)}
    for i in range(len(words) - length + 1):
        if tuple(words[i : i + length]) in runs:
            return " ".join(words[i : i + length])
    return ""
