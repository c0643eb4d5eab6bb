"""`typos`: two letters of a word change places. What she tells stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muarl.user.knobs.dice import Dice

_WORD = re.compile(r"(?<![\w'])[a-zA-Z]{4,}(?![\w'])")


def slip(text: str, kept: Iterable[str], dice: Dice) -> str:
    """A text, at the knob's rate with a slip of the keys.

    Args:
        text: What she is about to say.
        kept: Texts whose words are left alone.
        dice: Draws.
    """
    if "typos" not in dice.rates:
        return text
    whole = {word.casefold() for value in kept for word in _WORD.findall(value)}
    places = [
        at.start() + i
        for at in _WORD.finditer(text)
        if at[0].casefold() not in whole
        for i in range(1, len(at[0]) - 2)
        if at[0][i] != at[0][i + 1]
    ]
    if not places or not dice.roll("typos"):
        return text
    place = dice.stream("place of a typo").choice(places)
    return f"{text[:place]}{text[place + 1]}{text[place]}{text[place + 2 :]}"
