"""How it ends, and when: metrics 11, 12 and 13."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from muarl.measure.figure import Figure, each
from muarl.measure.view import AgentTurn, UserTurn, View

_EMPTY_WORDS = 12
"""A message that closes, and has fewer words, adds nothing."""


def stops_early(turn: UserTurn) -> bool:
    """She ends the dialogue while a request is neither fulfilled nor refused, nor said to be done."""
    return turn.stop and turn.unsettled > 0


def _early(view: View) -> Iterator[float]:
    """For each end that is hers; leaving out of impatience is counted as abandonment, not here."""
    if view.transcript.goals and view.outcome_class != "left":
        yield from (float(stops_early(turn)) for turn in view.user if turn.stop)


def _late(view: View) -> Iterator[float]:
    """Turns after her last request was settled, the one that takes leave not counted."""
    if view.transcript.goals and view.user and not view.user[-1].unsettled:
        yield float(max(0, sum(not turn.unsettled for turn in view.user) - 1))


def _empty_agent(turn: AgentTurn) -> bool:
    return (
        not turn.uses
        and len(turn.words) < _EMPTY_WORDS
        and not turn.cues & {"ask", "confirm", "done", "refuse", "transfer"}
    )


def _empty_user(turn: UserTurn) -> bool:
    return "close" in turn.cues and len(turn.words) < _EMPTY_WORDS and not turn.cues & {"ask"}


def _ping_pong(view: View) -> list[float]:
    """Whether two exchanges in a row added nothing."""
    empty = [
        _empty_agent(heard) and _empty_user(turn) and not turn.first for heard, turn in view.pairs
    ]
    return [float(any(a and b for a, b in itertools.pairwise(empty)))]


def _hazard(view: View) -> Iterator[float]:
    """For each answer given while something was unsettled, whether she left with it."""
    if view.transcript.goals:
        yield from (float(turn.stop) for _, turn in view.pairs if turn.unsettled)


FIGURES = (
    Figure(
        name="premature_termination",
        number=11,
        says="share of the ends she makes, abandonment apart, at which one of her requests is neither "
        "fulfilled, nor refused, nor said to be done",
        source="UserProxyBench",
        unit="share",
        better="lower",
        items=each(_early),
    ),
    Figure(
        name="turns_after_done",
        number=12,
        says="turns of hers after her last request was settled, taking leave not counted",
        source="muarl",
        unit="turns",
        better="lower",
        items=each(_late),
    ),
    Figure(
        name="ended_by_cap",
        number=12,
        says="share of the dialogues that a cap ended",
        source="muarl",
        unit="share",
        better="lower",
        items=each(lambda view: [float(view.outcome_class == "cut")]),
    ),
    Figure(
        name="ping_pong",
        number=12,
        says="share of the dialogues with two exchanges in a row of thanks and farewells only",
        source="muarl",
        unit="share",
        better="lower",
        items=each(_ping_pong),
    ),
    Figure(
        name="abandons",
        number=13,
        says="share of the dialogues that she leaves out of impatience",
        source="Simulated Customers Never Walk Away",
        unit="share",
        better="compare",
        items=each(lambda view: [float(view.outcome_class == "left")]),
    ),
    Figure(
        name="leaving_hazard",
        number=13,
        says="share of the answers she gives while a request is unsettled with which she leaves",
        source="Simulated Customers Never Walk Away",
        unit="share",
        better="compare",
        items=each(_hazard),
    ),
)
