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

    A probability that is no number above 0 counts as an even share.

    Example:
        >>> candidates_in('{"messages": [{"text": "Yes.", "probability": 0.7}]}', 5)
        [Candidate(text='Yes.', weight=0.7)]
    """
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        found = _decoder.decode(answer[begin : end + 1].encode())
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return []
    return [
        Candidate(message.text, _weight(message.probability, count))
        for message in found.messages[:count]
    ]


def _weight(given: Any, count: int) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return min(float(given), 1.0) if is_number and given > 0 else 1 / count


def draw(found: Sequence[Candidate], how: str, rng: random.Random) -> str:
    """One of them: by weight ("probability"), or each as likely as another ("uniform")."""
    weights = [each.weight for each in found] if how == "probability" else None
    return rng.choices([each.text for each in found], weights)[0]
