"""Which of the dialogues that stand all checks are handed over."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.spec.base import Fraction, Spec

Axis = Literal["persona", "user", "writes", "reads", "turns", "wishes", "finds", "refusals"]


class SelectSpec(Spec):
    """So many of them, spread evenly along axes, what is rare first.

    What is rare is told from several dialogues of one task.
    """

    at_most: Annotated[int, Field(gt=0)]
    """Dialogues that are handed over."""
    axes: Annotated[list[Axis], Field(min_length=1)] = ["persona", "writes"]
    """Along what they are spread: who the user was, of which kind, turns that changed the world (4 or more
    are one), calls that only looked (6 or more), turns in fours; and what composed tasks were balanced by:
    wishes, facts to find, and wishes that the rules forbid."""
    recoveries: Fraction = 0.1
    """Share of them that are taken first of those in which a call failed, or a change was taken back, and
    which succeeded all the same; as far as there are so many."""
