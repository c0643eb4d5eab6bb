"""What she tells, and when: metrics 4, 5 and 6."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.measure.figure import Figure, each, turns
from muarl.measure.view import UserTurn, View
from muarl.measure.words import longest_run, words
from muarl.spoken.naming import entities

_PARROTED = 6
"""Words in a row that two people seldom choose alike; her facts are shorter."""

_MOST = 400
"""Words of an instruction and of a turn that are compared; the time goes with their product."""


def _premature(view: View) -> Iterator[float]:
    """For each fact told that waits to be asked for, whether nobody had asked."""
    for turn in view.user:
        for fact in turn.first:
            if fact.disclose == "on_request":
                yield float(fact in turn.unasked)


def is_premature(turn: UserTurn) -> bool:
    """She tells something that nobody asked for and that waits to be asked for."""
    return any(fact.disclose == "on_request" for fact in turn.unasked)


def _dumped(view: View) -> Iterator[float]:
    if view.user:
        told = set(view.user[0].tells)
        yield from (float(fact in told) for fact in view.facts if fact.disclose != "never")


def _leaked(view: View) -> Iterator[float]:
    told = {fact for turn in view.user for fact in turn.tells}
    yield from (float(fact in told) for fact in view.facts if fact.disclose == "never")


def _gold(view: View) -> Iterator[float]:
    """For each argument of a gold write that she cannot know, whether she said it before the agent."""
    hers = {name for fact in view.facts for name in entities(fact.value)}
    hers |= entities(view.transcript.instruction)
    secret = {
        name
        for goal in view.transcript.goals
        for call in goal.calls
        for value in call.arguments.values()
        if isinstance(value, str)
        for name in entities(value) - hers
    }
    said = {name for turn in view.user for name in turn.ungrounded}
    yield from (float(name in said) for name in sorted(secret))


def _parrots(view: View) -> Iterator[float]:
    instruction = words(view.transcript.instruction)[:_MOST]
    if instruction:
        for turn in view.user:
            if turn.words:
                yield float(longest_run(turn.words[:_MOST], instruction) >= _PARROTED)


FIGURES = (
    Figure(
        name="premature_disclosure",
        number=4,
        says="share of the facts told that wait to be asked for and were told before the agent asked; "
        "a question counts for one telling of a fact of its name",
        source="UserProxyBench",
        unit="share",
        better="lower",
        items=each(_premature),
    ),
    Figure(
        name="premature_turns",
        number=4,
        says="share of the user's turns that tell such a fact",
        source="muarl",
        unit="share",
        better="lower",
        items=turns(is_premature),
        turn=is_premature,
    ),
    Figure(
        name="first_turn_dump",
        number=5,
        says="share of the facts she may tell that she tells in her first turn",
        source="CustomerSim",
        unit="share",
        better="compare",
        items=each(_dumped),
    ),
    Figure(
        name="identifiers",
        number=5,
        says="ids, numbers of two digits or more, dates and e-mail addresses in a turn of the user's",
        source="USI",
        unit="per turn",
        better="compare",
        items=each(lambda view: [float(len(entities(t.text))) for t in view.user if t.words]),
    ),
    Figure(
        name="hidden_fact_leak",
        number=6,
        says="share of the facts that she is never to tell that she told",
        source="tau-bench's rules for users",
        unit="share",
        better="lower",
        items=each(_leaked),
    ),
    Figure(
        name="gold_leak",
        number=6,
        says="share of the values of gold calls that she cannot know that she said before the agent",
        source="CUE",
        unit="share",
        better="lower",
        items=each(_gold),
    ),
    Figure(
        name="parroting",
        number=6,
        says=f"share of the user's turns with {_PARROTED} words in a row of her instruction",
        source="CUE",
        unit="share",
        better="lower",
        items=each(_parrots),
    ),
)
