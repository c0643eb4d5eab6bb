"""The user's contract as a score: metric 25.

Criteria that the words, the ledger and the tools' record decide, in the four families of UserProxyBench
(2609.38043) and one of muarl's. A dialogue's score is the product of the criteria that apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from muarl.measure.disclosure import is_premature
from muarl.measure.ending import stops_early
from muarl.measure.figure import Figure, each
from muarl.measure.goals import changes
from muarl.measure.role import breaks_format, flips_role
from muarl.measure.truth import claims_unexecuted, is_false_claim, is_ungrounded, lets_pass
from muarl.measure.view import View


def _grounded(view: View) -> bool:
    return not any(is_ungrounded(turn) or claims_unexecuted(turn) for turn in view.user)


def _discreet(view: View) -> bool | None:
    """No fact before its time, and none that is hers to keep."""
    guarded = [fact for fact in view.facts if fact.disclose != "volunteer"]
    if not guarded:
        return None
    hers = {fact.value for fact in view.facts if fact.disclose != "never"}
    kept = {fact for fact in guarded if fact.disclose == "never" and fact.value not in hers}
    told = {fact for turn in view.user for fact in turn.tells}
    return not kept & told and not any(map(is_premature, view.user))


def _faithful(view: View) -> bool | None:
    """Wants what she is to want: agrees to nothing else, changes nothing unscripted."""
    goals = view.transcript.goals
    if not goals:
        return None
    allowed = sum(bool(goal.instead) for goal in goals) * view.transcript.changes_mind
    agreed = any(is_false_claim(turn) and lets_pass(turn) for turn in view.user)
    return not agreed and sum(map(changes, view.user)) <= allowed


def _complete(view: View) -> bool | None:
    """Does not leave before all that she wants was settled, impatience apart."""
    if not view.transcript.goals or not view.user or view.outcome_class in ("left", "cut"):
        return None
    return not any(map(stops_early, view.user))


def _in_role(view: View) -> bool:
    return not any(flips_role(turn) or breaks_format(turn) for turn in view.user)


FAMILIES: Mapping[str, tuple[str, Callable[[View], bool | None]]] = {
    "groundedness": ("she invents nothing and claims no action that she did not take", _grounded),
    "disclosure": (
        "she tells nothing before its time, and nothing that is hers to keep",
        _discreet,
    ),
    "goal": (
        "she agrees to nothing that she does not want and changes nothing unscripted",
        _faithful,
    ),
    "completeness": ("she does not leave before everything is settled", _complete),
    "role": ("she speaks as the user, in the form of a user's message", _in_role),
}


def _kept(family: str) -> Figure:
    says, criterion = FAMILIES[family]

    def observe(view: View) -> Iterator[float]:
        if view.user and (kept := criterion(view)) is not None:
            yield float(kept)

    return Figure(
        name=f"contract_{family}",
        number=25,
        says=f"share of the dialogues in which {says}",
        source="UserProxyBench",
        unit="share",
        better="higher",
        items=each(observe),
    )


def _all(view: View) -> Iterator[float]:
    found = [criterion(view) for _, criterion in FAMILIES.values()] if view.user else []
    applicable = [kept for kept in found if kept is not None]
    if applicable:
        yield float(all(applicable))


FIGURES = (
    Figure(
        name="contract",
        number=25,
        says="share of the dialogues in which every criterion of the contract that applies is kept (UFS)",
        source="UserProxyBench",
        unit="share",
        better="higher",
        items=each(_all),
    ),
    *map(_kept, FAMILIES),
)
