"""Observation, of what the user says: other words for it, and slips of the keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

from muarl.json_values import texts_in
from muarl.perturb.dice import Dice
from muarl.perturb.words import MESSAGES, parts, reworded
from muarl.spec import TaskSpec

_WORD = re.compile(r"(?<![\w'])[a-z]{4,}(?![\w'])")
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORDS_PER_SLIP = 10


def perturbed(text: str, number: int, kept: Iterable[str], dice: Dice) -> tuple[str, list[str]]:
    """A message of the user as the policy reads it, and the kinds that changed it.

    Args:
        text: What she says.
        number: Of the message, 0 for the opening.
        kept: What of it stays as it is.
        dice: Draws.
    """
    kept = tuple(kept)
    acted = []
    if dice.roll("rephrase_message", number):
        other = reworded(text, MESSAGES, dice.stream("words of a message", number), kept)
        if other != text:
            text = other
            acted.append("rephrase_message")
    if dice.roll("typo", number):
        other = slipped(text, kept, dice.stream("slips in a message", number))
        if other != text:
            text = other
            acted.append("typo")
    return text, acted


def slipped(text: str, kept: Iterable[str], rng: Random) -> str:
    """A text with a slip of the keys in each ten words begun, as far as it has words to spare."""
    found, start = [], 0
    for part in parts(text, kept):
        if not part.kept:
            words = _WORD.finditer(part.text)
            found += [(start + w.start(), start + w.end()) for w in words]
        start += len(part.text)
    wanted = -(-len(text.split()) // _WORDS_PER_SLIP)
    chosen = sorted(rng.sample(found, min(wanted, len(found))), reverse=True)
    for begin, end in chosen:  # from the last, so that places before it stay where they are
        text = text[:begin] + _slip(text[begin:end], rng) + text[end:]
    return text


def _slip(word: str, rng: Random) -> str:
    """A word with one key hit twice, missed, beside the right one, or before its turn."""
    at = rng.randrange(1, len(word) - 1)
    swapped = f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}"
    ways = [
        f"{word[:at]}{word[at]}{word[at:]}",
        f"{word[:at]}{word[at + 1 :]}",
        f"{word[:at]}{rng.choice(_beside(word[at]))}{word[at + 1 :]}",
    ]
    return rng.choice([*ways, swapped] if swapped != word else ways)


def _beside(key: str) -> str:
    """The keys left and right of one."""
    row = next(row for row in _KEYS if key in row)
    at = row.index(key)
    return row[max(0, at - 1) : at] + row[at + 1 : at + 2]


def needed(task: TaskSpec) -> frozenset[str]:
    """Texts that a task needs to the letter: facts of its ledger, arguments of its gold calls."""
    found = {text for call in task.gold for text in texts_in(call.arguments)}
    if task.user is not None:
        found |= {fact.value for fact in task.user.facts}
        found |= {fact.value for wish in task.user.requests for fact in wish.all_facts()}
    return frozenset(found)
