"""Suites: several domains that a run trains or evaluates on at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.spec.base import LARGEST_WEIGHT, Id, Spec
from muarl.spec.user import UserSpec

MEMBER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
MemberName = Annotated[str, Field(pattern=MEMBER_PATTERN)]
"""An identifier without a dot: what stands before the first dot of a task's id in the run."""


class MemberSpec(Spec):
    """One domain of a suite."""

    file: str
    """The domain's file, or the folder that holds its `domain.yaml`, relative to this file."""
    splits: Annotated[dict[Id, Id], Field(min_length=1)]
    """Split of the suite to the domain's own split that is a part of it: `{train: train, held_out:
    test}`. A domain may be missing from a split."""
    weight: Annotated[float, Field(gt=0, le=LARGEST_WEIGHT)] | None = None
    """How often training draws this domain, beside the others: 2 is twice as often as 1. Left out
    everywhere, all tasks are drawn alike, so that a domain with more tasks is drawn more often."""
    user: UserSpec | None = None
    """Who plays the user here, whoever plays her elsewhere; for domains that only one kind of user
    fits."""
    row: Id | None = None
    """Under which name success is summed up in reports; left out, the member's own. Several may share
    one."""


class SuiteSpec(Spec):
    """A suite's file: a run names it in the place of a domain."""

    version: Literal[1]
    """Version of this file's form."""
    id: Id
    """Name of the suite, in reports."""
    summary: str
    """The suite in a sentence, for people."""
    members: Annotated[dict[MemberName, MemberSpec], Field(min_length=1)]
    """Name to domain. In a run the task `W1` of the member `shop` is called `shop.W1`."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its splits, in the file's order."""
        return tuple(dict.fromkeys(s for member in self.members.values() for s in member.splits))

    @model_validator(mode="after")
    def _all_weights_or_none(self) -> SuiteSpec:
        given = [name for name, member in self.members.items() if member.weight is not None]
        if given and len(given) < len(self.members):
            lacking = next(name for name in self.members if name not in given)
            raise ValueError(
                f"{given[0]!r} has a weight and {lacking!r} has none; give all of them one, or none"
            )
        return self
