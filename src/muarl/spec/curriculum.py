"""Which tasks an iteration plays; docs/curricula.md has the rules and the proof that none starves."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from muarl.errors import did_you_mean
from muarl.spec.base import LARGEST_WEIGHT, Fraction, OneOf, Spec

Positive = Annotated[int, Field(gt=0)]
Weight = Annotated[float, Field(ge=0, le=LARGEST_WEIGHT)]

FailureClass = Literal[
    "truncated",
    "abandoned",
    "rules_broken",
    "invented",
    "failed_call",
    "stopped_early",
    "wrong_result",
]
"""How a dialogue failed; see `muarl.curriculum.failures`."""


class _Waiting(Spec):
    """Lets no task starve."""

    waiting: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of an iteration's tasks, at least one, that go to those that have waited longest. With m
    such places and N tasks, each is played at least once in any N / m iterations."""


class HalfCurriculum(_Waiting):
    """Tasks that about half of the dialogues solve: those tell most about what was done."""

    by: Literal["task", "kind"] = "task"
    """Whose success is estimated: each task's own, or that of all tasks with the same personas and the
    same tools in their gold calls. With many more tasks than are ever played, say `kind`."""
    memory: Fraction = 0.9
    """What one iteration leaves of what was seen before, since the policy changes."""
    sharpness: Annotated[float, Field(gt=0)] = 4.0
    """Power that the weight is raised to; more of it draws closer to a half."""


class FailuresCurriculum(_Waiting):
    """Tasks by how they fail: each class of failure gets its share, however rare it is."""

    by: Literal["task", "kind"] = "kind"
    """Whose failures are counted together; as of `half`."""
    memory: Fraction = 0.9
    """What one iteration leaves of what was seen before."""
    weights: dict[str, Weight] = {}
    """Class of failure to its share beside the others'; 1 unless given."""

    @model_validator(mode="after")
    def _known_classes(self) -> FailuresCurriculum:
        known = get_args(FailureClass)
        for name in self.weights:
            if name not in known:
                raise ValueError(
                    f"{name!r} is no class of failure{did_you_mean(name, known)}; classes are "
                    f"{', '.join(known)}"
                )
        if self.weights.keys() == set(known) and not any(self.weights.values()):
            raise ValueError("all weights are 0: there would be nothing to draw by")
        return self


class HorizonCurriculum(_Waiting):
    """Short tasks first: those with few gold calls, then more."""

    begin: Annotated[int, Field(ge=0)] = 1
    """Gold calls of a task in the first iteration, at most."""
    iterations: Positive = 20
    """Iterations until the longest tasks are let in; the limit rises evenly."""


class CurriculumSpec(OneOf):
    """What tasks are drawn by: one of these."""

    half: HalfCurriculum | None = None
    """By success near one half."""
    failures: FailuresCurriculum | None = None
    """By class of failure."""
    horizon: HorizonCurriculum | None = None
    """By length, growing."""

    @property
    def kind(self) -> HalfCurriculum | FailuresCurriculum | HorizonCurriculum:
        """The one that is given."""
        found = self.half or self.failures or self.horizon
        assert found is not None
        return found
