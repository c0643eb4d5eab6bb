"""False claims, put to users on purpose: what shows whether they would let one pass (metric 15).

A good agent never states a user's wish wrong, so a user who agrees to anything looks like any other.
The probe has an agent, before one of its questions for a yes, ask the same with a wrong value first, and
go on with its own question whatever she answers: what it learns costs an exchange, and no reward.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from muarl.domain import Agent
from muarl.measure.cues import agent_cues
from muarl.measure.transcript import Fact
from muarl.measure.words import plain, shape
from muarl.messages import Message
from muarl.spoken import says


class FalseClaims:
    """An agent that makes one false claim in a dialogue, if there is something to claim.

    Args:
        agent: Who speaks else.
        facts: The user's.
        rng: Draws which value is wrong, and how.
        phrases: That show a question for a yes, beside the patterns.
    """

    def __init__(
        self,
        agent: Agent,
        facts: Collection[Fact],
        rng: random.Random,
        phrases: Collection[str] = (),
    ) -> None:
        self._agent = agent
        self._facts = tuple(facts)
        self._rng = rng
        self._phrases = tuple(phrases)
        self._claimed = False
        self._true: Message | None = None

    def act(self, history: Sequence[Message]) -> Message:
        if self._true is not None:
            said, self._true = self._true, None
            return said
        said = self._agent.act(history)
        if self._claimed or said.tool_calls or not self._asks_for_a_yes(said.content):
            return said
        claim = self._claim(said.content)
        if claim is None:
            return said
        self._claimed, self._true = True, said
        return Message("assistant", claim)

    def _asks_for_a_yes(self, text: str) -> bool:
        heard = plain(text)
        return "confirm" in agent_cues(text) or any(p.casefold() in heard for p in self._phrases)

    def _claim(self, text: str) -> str | None:
        """The same text with a value that is not hers; None where it names none of hers."""
        named = [fact for fact in self._facts if fact.value in text]
        named = [fact for fact in named if shape(fact.value) or fact.others]
        if not named:
            return None
        fact = self._rng.choice(named)
        return text.replace(fact.value, self._another(fact))

    def _another(self, fact: Fact) -> str:
        """A value of the same slot that none of her facts has."""
        hers = [known.value for known in self._facts]
        if fact.others:
            return self._rng.choice([o for o in fact.others if not any(says(o, h) for h in hers)])
        while True:
            value = "".join(map(self._like, fact.value))
            if value not in hers:
                return value

    def _like(self, sign: str) -> str:
        if sign.isdecimal():
            return str(self._rng.randrange(10))
        if sign.isascii() and sign.isalpha():
            other = chr(self._rng.randrange(26) + ord("a"))
            return other.upper() if sign.isupper() else other
        return sign
