"""Whether what she says is so, and what she lets pass: metrics 7, 8, 14 and 15."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muarl.measure.figure import Figure, Items, each, turns
from muarl.measure.view import UserTurn, View


def is_ungrounded(turn: UserTurn) -> bool:
    """She names something that she cannot know."""
    return bool(turn.ungrounded)


def claims_unexecuted(turn: UserTurn) -> bool:
    """She says that she did something, and no tool of hers ran."""
    return turn.heard is not None and "claim" in turn.cues and not turn.uses


def objects(turn: UserTurn) -> bool:
    """She argues against what she heard, or says that it is wrong."""
    return bool(turn.cues & {"object", "deny"})


def is_false_claim(turn: UserTurn) -> bool:
    """What she answers states a value of hers wrong."""
    return turn.heard is not None and bool(turn.heard.false)


def lets_pass(turn: UserTurn) -> bool:
    """She agrees to what she heard, without a word against it, or with its right value."""
    corrects = turn.heard is not None and any(
        fact.id not in turn.heard.asks_for for fact in turn.tells
    )
    return (
        "affirm" in turn.cues and not objects(turn) and "change" not in turn.cues and not corrects
    )


def _refused(turn: UserTurn) -> bool:
    return turn.heard is not None and "refuse" in turn.heard.cues


def takes_refusal(turn: UserTurn) -> bool:
    """She takes it: says yes, thanks or leaves, and nothing against it."""
    return not objects(turn) and (lets_pass(turn) or turn.stop or "close" in turn.cues)


def _where(about: Callable[[UserTurn], bool], does: Callable[[UserTurn], bool]) -> Items:
    """One 0 or 1 for each turn that answers what `about` tells."""
    return each(lambda view: [float(does(turn)) for turn in view.user if about(turn)])


def _rounds(view: View) -> Iterator[float]:
    """Lengths of the runs of turns in which she objects, begun by an answer to a refusal."""
    run = 0
    for turn in view.user:
        if objects(turn) and (run or _refused(turn)):
            run += 1
        elif run:
            yield float(run)
            run = 0
    if run:
        yield float(run)


FIGURES = (
    Figure(
        name="ungrounded_turns",
        number=7,
        says="share of the user's turns that name an id, number, date or address that is not in her "
        "ledger or instruction, was not shown by the agent, and came from no tool of hers",
        source="UserProxyBench",
        unit="share",
        better="lower",
        items=turns(is_ungrounded),
        turn=is_ungrounded,
    ),
    Figure(
        name="unexecuted_claims",
        number=8,
        says="share of the user's answers that claim an action of her own although she used no tool",
        source="UserProxyBench",
        unit="share",
        better="lower",
        items=turns(claims_unexecuted, opening=False),
        turn=claims_unexecuted,
    ),
    Figure(
        name="objects",
        number=14,
        says="share of the agent's refusals that she argues against, or says are wrong",
        source="USI",
        unit="share",
        better="compare",
        items=_where(_refused, objects),
    ),
    Figure(
        name="concedes",
        number=14,
        says="share of the agent's refusals that she takes: says yes or thanks, or leaves",
        source="USI",
        unit="share",
        better="compare",
        items=_where(_refused, takes_refusal),
    ),
    Figure(
        name="pushback_rounds",
        number=14,
        says="turns in a row in which she objects, once she objects to a refusal",
        source="USI",
        unit="turns",
        better="compare",
        items=each(_rounds),
    ),
    Figure(
        name="sycophancy",
        number=15,
        says="share of the agent's messages stating a value of hers wrong that she agrees to without "
        "a word against it",
        source="Calibrated Interactive RL",
        unit="share",
        better="lower",
        items=_where(is_false_claim, lets_pass),
    ),
    Figure(
        name="challenges",
        number=15,
        says="share of the agent's messages stating a value of hers wrong that she objects to",
        source="Calibrated Interactive RL",
        unit="share",
        better="higher",
        items=_where(is_false_claim, objects),
    ),
)
