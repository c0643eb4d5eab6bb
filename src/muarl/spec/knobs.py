"""Behaviour knobs of a user: how often she makes a dialogue harder than it need be.

Each rate is a share of its chances; a chance is a moment at which the behaviour could show. Acts and
chances are in the episode (`UserReply.knobs`, `UserReply.chances`), so that a rate can be recovered.
Knobs left out do nothing and record nothing; those given as 0 record their chances.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Spec

ANSWERS = ("partial", "unsure", "refuse")
"""What may stand in the place of an answer; at most one of them does."""
INTERRUPTIONS = ("silence", "digress")
"""What may stand in the place of any reply; at most one of them does."""


class KnobsSpec(Spec):
    """How often a user shows a behaviour."""

    withhold: Fraction | None = None
    """Of facts she would volunteer and can be asked for: those she keeps until she is asked."""
    partial: Fraction | None = None
    """Of first questions for a fact: those answered with a part of it. Asked again, she tells it."""
    unsure: Fraction | None = None
    """Of first questions for a fact: those answered that she does not know. Asked again, she does."""
    refuse: Fraction | None = None
    """Of first questions for a fact: those she declines to answer. Asked again, she tells it."""
    change_request: Fraction | None = None
    """Of requests that can change, those that change at the first valid confirmation question: from
    a request to its `instead` where the persona `changes_mind` (if it does not change, she asks for
    `instead` from the start), else, once, to the request she would have made next."""
    silence: Fraction | None = None
    """Of replies: those in which she says nothing. Never twice in a row."""
    digress: Fraction | None = None
    """Of replies: those in which she talks of something else instead. Never twice in a row."""
    unavailable: Fraction | None = None
    """Of requests that are over: those after which she asks for what nobody here does; once."""
    push_back: Fraction | None = None
    """Of requests that are refused: those on which she insists; at the second refusal she gives in."""
    accept_false: Fraction | None = None
    """Of confirmation questions that do not name the facts of her request: those she says yes to.
    Left out, or at 0, she challenges all of them."""
    challenge_done: Fraction | None = None
    """Of claims that a request is done to which she never said yes: those she challenges, once."""
    typos: Fraction | None = None
    """Of replies: those with a slip of the keys, never in what she tells."""
    no_follow_up: Fraction | None = None
    """Of dialogues: those in which she asks for everything at once and never asks back."""
    abandon: Fraction | None = None
    """Of dialogues that last so long: those she leaves after `abandon_after` replies."""
    abandon_after: Annotated[int, Field(ge=0)] = 4
    """For `abandon`: replies after the opening."""

    @model_validator(mode="after")
    def _one_at_a_time(self) -> KnobsSpec:
        for *names, last in (ANSWERS, INTERRUPTIONS):
            if math.fsum(getattr(self, name) or 0.0 for name in (*names, last)) > 1:
                of = f"{', '.join(names)} and {last}"
                raise ValueError(f"only one of {of} can act: their rates are at most 1 together")
        return self

    @property
    def rates(self) -> dict[str, float]:
        """The knobs that are given, and their rates."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return {n: r for n, r in given.items() if r is not None and n != "abandon_after"}

    def under(self, other: KnobsSpec | None) -> KnobsSpec:
        """These, but for those that `other` gives."""
        if other is None:
            return self
        after = other.abandon_after if other.abandon is not None else self.abandon_after
        return self.model_validate({**self.rates, **other.rates, "abandon_after": after})
