"""Units of text that figures count: words, sentences, n-grams, entities, shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from muarl.spoken import MAX_CHARS

_WORD = re.compile(r"[^\W_]+(?:['’.@:/-][^\W_]+)*")
_END = re.compile(r"(?<=[.!?؟])\s+|(?<=[。！？])|\n+")
_APOSTROPHES = re.compile(
    r"(?<!\w)(?:(do|does|did|is|are|was|were|wo|could|would|should|has|have|had)nt|(ca)nt"
    r"|(that|there|what)s|(i|they|we|you)ve|(i)m)(?!\w)"
)


def plain(text: str) -> str:
    """Lower case, apostrophes where they belong, single spaces: what patterns are matched against.

    Example:
        >>> plain("Thats  all, I DONT need it")
        "that's all, i don't need it"
    """
    spaced = " ".join(text[:MAX_CHARS].casefold().replace("’", "'").split())
    return _APOSTROPHES.sub(_with_apostrophe, spaced)


def _with_apostrophe(word: re.Match[str]) -> str:
    at = len(word[0]) - (2 if word[0].endswith("ve") else 1)
    return f"{word[0][:at]}'{word[0][at:]}"


def words(text: str) -> tuple[str, ...]:
    """Words in lower case; `don't`, `10:30` and `a@b.org` are one each.

    Example:
        >>> words("Don't ship W-41!")
        ("don't", 'ship', 'w-41')
    """
    return tuple(word.replace("’", "'") for word in _WORD.findall(text[:MAX_CHARS].casefold()))


def sentences(text: str) -> list[str]:
    """Sentences and lines, without those that are empty."""
    return [part.strip() for part in _END.split(text[:MAX_CHARS]) if part.strip()]


def ngrams(units: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Runs of n units, in order."""
    return [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]


def longest_run(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest run of units that both have (longest common substring)."""
    best = 0
    row = [0] * (len(theirs) + 1)
    for unit in ours:
        last = 0
        for at, other in enumerate(theirs, start=1):
            last, row[at] = row[at], last + 1 if unit == other else 0
            best = max(best, row[at])
    return best


@lru_cache(maxsize=4096)
def shape(value: str) -> re.Pattern[str] | None:
    """What looks like a value: digit for digit, letter for letter; None where much else does.

    Example:
        >>> bool(shape("W41").fullmatch("B77"))
        True
        >>> shape("oslo") is None and shape("12") is None
        True
    """
    if sum(c.isdecimal() for c in value) < 2 or len(value) < 3:
        return None
    pattern = "".join(
        r"\d" if c.isdecimal() else "[^\\W\\d_]" if c.isalpha() else re.escape(c) for c in value
    )
    return re.compile(rf"(?<!\w){pattern}(?!\w)")


def similar(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Jaccard similarity of two sets of units; 0 where either is empty."""
    one, other = set(ours), set(theirs)
    return len(one & other) / len(one | other) if one and other else 0.0
