"""What she wants, and whether she keeps wanting it: metrics 9 and 10."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.measure.figure import Figure, each, turns
from muarl.measure.transcript import Fact, Goal
from muarl.measure.truth import is_false_claim, lets_pass
from muarl.measure.view import UserTurn, View


def _expressed(view: View) -> Iterator[float]:
    """For each of her requests, whether it was put: told by its facts, or else by her taking it up."""
    told = {fact for turn in view.user for fact in turn.tells}
    for place, goal in enumerate(view.transcript.goals):
        facts = _own(goal, view)
        if facts:
            yield float(bool(told & facts))
        else:  # nothing tells it from others; the n-th is put once those before it are settled
            yield float(any(_settled(view, turn) >= place for turn in view.user))


def _own(goal: Goal, view: View) -> set[Fact]:
    """Facts that only this request has, and that she may tell."""
    others = [g for g in view.transcript.goals if g is not goal]
    shared = {(f.id, f.value) for g in others for f in (*g.facts, *g.instead)}
    mine = (*goal.facts, *goal.instead)
    return {f for f in mine if f.disclose != "never" and (f.id, f.value) not in shared}


def _settled(view: View, turn: UserTurn) -> int:
    return len(view.transcript.goals) - turn.unsettled


def _accepts_wrong(view: View) -> list[float]:
    """Whether she agreed to a value that is not hers and never objected to it later."""
    return [float(any(is_false_claim(turn) and lets_pass(turn) for turn in view.user))]


def changes(turn: UserTurn) -> bool:
    """She takes back or replaces what she had put forward, by her words or by the ledger.

    What a refusal makes her ask for instead is no change of mind.
    """
    return turn.act == "change"


def _slots(view: View) -> list[float]:
    """Slots whose value in her own words changes within a request, counted."""
    asserted: dict[tuple[int, str], str] = {}
    changed: set[tuple[int, str]] = set()
    for turn in view.user:
        for fact in turn.tells:
            at = _slot(fact, view)
            if at is None:
                continue
            if asserted.setdefault(at, fact.value) != fact.value:
                changed.add(at)
    return [float(len(changed))]


def _slot(fact: Fact, view: View) -> tuple[int, str] | None:
    """The request and the slot that a fact is a value of, where it may change."""
    for place, goal in enumerate(view.transcript.goals):
        if fact in goal.instead or fact in goal.facts:
            return place, fact.id
    return None


def _changes(view: View) -> list[float]:
    return [float(any(map(changes, view.user)))]


def _unscripted(view: View) -> list[float]:
    """Whether she changed her mind oftener than her script lets her."""
    said = view.transcript
    allowed = sum(bool(goal.instead) for goal in said.goals) * said.changes_mind
    return [float(sum(map(changes, view.user)) > max(allowed, said.told_to_change))]


def _when(view: View) -> Iterator[float]:
    yield from (float(turn.index) for turn in view.user if changes(turn))


FIGURES = (
    Figure(
        name="goal_coverage",
        number=9,
        says="share of her requests that she put",
        source="UGST",
        unit="share",
        better="higher",
        items=each(_expressed),
    ),
    Figure(
        name="accepts_wrong",
        number=9,
        says="share of the dialogues in which she agrees to a value that is not hers",
        source="UGST",
        unit="share",
        better="lower",
        items=each(_accepts_wrong),
    ),
    Figure(
        name="changes_mind",
        number=10,
        says="share of the dialogues in which she takes back or replaces what she had put forward",
        source="AgentChangeBench",
        unit="share",
        better="compare",
        items=each(_changes),
    ),
    Figure(
        name="change_turns",
        number=10,
        says="share of the user's answers that do so",
        source="AgentChangeBench",
        unit="share",
        better="compare",
        items=turns(changes, opening=False),
        turn=changes,
    ),
    Figure(
        name="changed_slots",
        number=10,
        says="slots of the ledger in a dialogue whose value she asserts first so, then otherwise",
        source="AgentChangeBench",
        unit="slots",
        better="compare",
        items=each(_slots),
    ),
    Figure(
        name="unscripted_change",
        number=10,
        says="share of the dialogues in which she changes her mind oftener than her script, or a knob, lets her",
        source="AgentChangeBench",
        unit="share",
        better="lower",
        items=each(_unscripted),
    ),
    Figure(
        name="turn_of_change",
        number=10,
        says="which of her turns takes something back (the opening is turn 0)",
        source="AgentChangeBench",
        unit="turn",
        better="compare",
        items=each(_when),
    ),
)
