"""Verbalized sampling: several messages and their probabilities in one answer, of which one is drawn.

A model that is asked for one message gives nearly the same one each time; asked for several and how
likely each is, it spells out the spread that it has learned (arXiv 2608.12253, "VS").
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

_ASK = """\
Answer with {count} different messages that this person might send next, as different as they could \
be, and how likely each of them is. Write nothing but JSON of this form:
{{"messages": [{{"text": "...", "probability": 0.4}}, ...]}}"""

_LARGEST = 100.0
"""Of a probability, in percent."""


class Candidate(NamedTuple):
    """A message that she might send, and its weight."""

    text: str
    weight: float


class _Message(msgspec.Struct):
    text: str
    probability: Any = None


class _Answer(msgspec.Struct):
    messages: list[_Message]


_decoder = msgspec.json.Decoder(_Answer)


def ask_for(count: int) -> str:
    """What asks for so many candidates."""
    return _ASK.format(count=count)


def candidates_in(answer: str, count: int) -> list[Candidate]:
    """The candidates of an answer, `count` at most; none if it is not of the form.

    Probabilities are weights: models write 0.4, 40 and "40%", and they need not add up to 1. One that
    is none counts as the mean of the others.

    Example:
        >>> candidates_in('{"messages": [{"text": "Yes.", "probability": 0.7}]}', 5)
        [Candidate(text='Yes.', weight=0.7)]
    """
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        found = _decoder.decode(answer[begin : end + 1].encode())
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return []
    messages = found.messages[:count]
    said = [_number(message.probability) for message in messages]
    known = [number for number in said if number is not None]
    usual = sum(known) / len(known) if known else 1.0
    return [
        Candidate(message.text, usual if number is None else number)
        for message, number in zip(messages, said, strict=True)
    ]


def _number(given: Any) -> float | None:
    """A probability as a model writes it; None if it is none."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given.strip().removesuffix("%") if isinstance(given, str) else given)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number <= _LARGEST else None


def draw(found: Sequence[Candidate], how: str, rng: random.Random) -> str:
    """One of them: by weight ("probability"), or each as likely as another ("uniform")."""
    weights = [each.weight for each in found]
    by_weight = how == "probability" and any(weights)
    return rng.choices([each.text for each in found], weights if by_weight else None)[0]
