"""What of the tasks of an evaluation a policy was trained on: a tag that stands beside every score."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

UNKNOWN = "unknown: what it was trained on is not known"
_BASE = "; what the model it began as was trained on is not known"


class Contamination(msgspec.Struct, frozen=True):
    """What of the tasks a policy was trained on, or on nearly the same.

    Attributes:
        known: Whether it is known what the policy was trained on here.
        seen: Tasks that it was trained on; None where that is not known.
        evaluated: Tasks of the evaluation.
        says: The same in words.
        tag: The same in a word or two, for a table.
    """

    known: bool
    seen: int | None
    evaluated: int
    says: str
    tag: str = ""


def contamination(evaluated: int, seen: int | None, *, from_outside: bool = False) -> Contamination:
    """What is known of a policy.

    Args:
        evaluated: Tasks of the evaluation.
        seen: Those it was trained on; None where nothing is known.
        from_outside: It began as a model that was made elsewhere.

    Example:
        A run's own model on 40 held-out tasks: "none found"; if it began as one that was downloaded,
        "none found; what the model it began as was trained on is not known", in tables "none found*".
    """
    if seen is None:
        return Contamination(False, None, evaluated, UNKNOWN, "unknown")
    found = f"{seen} of {evaluated} tasks were trained on" if seen else "none found"
    tag = f"{seen} of {evaluated}" if seen else "none found"
    beyond, star = (_BASE, "*") if from_outside else ("", "")
    return Contamination(True, seen, evaluated, found + beyond, tag + star)


def of_all(each: Iterable[Contamination]) -> Contamination:
    """Of several trainings of one policy: that of which most is seen, or one that is not known."""
    return max(each, key=lambda one: (not one.known, one.seen or 0, one.says))
