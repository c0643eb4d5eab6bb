"""Other words for the same: phrases that mean the same, and what of a text stays as it is.

Rules of English, not a model: the same seed gives the same words, and nothing that a task needs is
touched. What none of the phrases knows is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random
from typing import NamedTuple

Phrases = tuple[tuple[str, ...], ...]
"""Groups of phrases any of which may stand for another."""

MESSAGES: Phrases = (
    ("hello", "hi", "hey", "good day"),
    ("could you", "can you", "would you", "are you able to"),
    ("i want you to", "i need you to", "i would like you to", "i'd like you to"),
    ("i want to", "i would like to", "i'd like to", "i wish to"),
    ("please", "kindly", "if you would"),
    ("i don't know", "i do not know", "i have no idea"),
    ("i don't remember", "i do not remember", "i can't remember"),
    ("thanks", "thank you", "many thanks"),
    ("that is all", "that's all", "that will be all"),
    ("bye", "goodbye"),
    ("go ahead", "do so", "proceed"),
    ("yes", "yes indeed", "certainly, yes"),
    ("sorry", "my apologies", "i'm sorry"),
    ("also", "in addition"),
    ("cancel", "call off"),
    ("instead", "rather"),
    ("for me", "on my behalf"),
    ("it is", "it's"),
    ("that is", "that's"),
)
"""What users say."""

VERBS: Phrases = (
    ("get", "fetch", "retrieve", "look up"),
    ("find", "search for", "locate"),
    ("list", "enumerate", "show"),
    ("give up", "stop trying"),
    ("returns", "gives back", "answers with"),
    ("create", "make", "set up"),
    ("change", "modify", "alter"),
    ("update", "bring up to date", "revise"),
    ("cancel", "call off"),
    ("delete", "remove"),
    ("send", "dispatch"),
    ("take back", "accept back"),
)
"""What descriptions of tools begin with."""

DESCRIPTIONS: Phrases = (
    ("cannot be undone", "is final", "is irreversible"),
    ("numbers of", "numbers belonging to"),
    ("customer", "client"),
    ("for example", "such as"),
    ("optional", "may be left out"),
    ("must be", "has to be"),
    ("do not", "never"),
)
"""What else is said in them."""

FRAMES = ("This tool does the following: {}", "Use it for this: {}", "In short: {}", "Purpose: {}")
"""Around a description."""


class Part(NamedTuple):
    """A piece of a text.

    Attributes:
        text: The piece.
        kept: It stays as it is.
    """

    text: str
    kept: bool


def parts(text: str, kept: Iterable[str]) -> Iterator[Part]:
    """A text in pieces, those that stay among them; together they are the text.

    Kept are the given values where they stand as words, and any word that holds a digit.
    """
    values = sorted({value for value in kept if value.strip()}, key=lambda v: (-len(v), v))
    known = [rf"(?<!\w){re.escape(value)}(?!\w)" for value in values]
    pattern = re.compile("|".join([*known, r"\w*\d\w*"]), re.IGNORECASE)
    end = 0
    for found in pattern.finditer(text):
        yield Part(text[end : found.start()], kept=False)
        yield Part(found[0], kept=True)
        end = found.end()
    yield Part(text[end:], kept=False)


def reworded(text: str, phrases: Phrases, rng: Random, kept: Iterable[str] = ()) -> str:
    """A text in which each known phrase gave way to another of its group; as it is if none is known."""
    pattern, others = _known(phrases)

    def other(found: re.Match[str]) -> str:
        return _as_begun(rng.choice(others[found[0].casefold()]), found[0])

    return "".join(
        part.text if part.kept else pattern.sub(other, part.text) for part in parts(text, kept)
    )


def described(text: str, rng: Random) -> str:
    """A description of a tool or a parameter in other words, as far as they are known."""
    pattern, others = _known(VERBS)
    verb = pattern.match(text)
    if verb is not None:
        text = _as_begun(rng.choice(others[verb[0].casefold()]), verb[0]) + text[verb.end() :]
    return reworded(text, DESCRIPTIONS, rng)


@cache
def _known(phrases: Phrases) -> tuple[re.Pattern[str], dict[str, list[str]]]:
    """What finds a phrase, and what may stand for each."""
    others = {p: [q for q in group if q != p] for group in phrases for p in group}
    longest_first = sorted(others, key=lambda phrase: (-len(phrase), phrase))
    either = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w'])(?:{either})(?![\w'])", re.IGNORECASE), others


def _as_begun(phrase: str, replaced: str) -> str:
    return phrase[0].upper() + phrase[1:] if replaced[0].isupper() else phrase


def framed(text: str, rng: Random) -> str:
    """A description in a frame."""
    return rng.choice(FRAMES).format(text)


def in_words(name: str) -> str:
    """What a name says: `order_id` is "order id", `orderId` too."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\W_]+", spaced)).strip().lower()
