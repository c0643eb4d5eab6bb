"""Predicates: what a reward or metric checks, as data.

Each predicate is a mapping with one key, which says its kind. Evaluation lives in `muarl.reward`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from muarl.spec.base import Spec
from muarl.spec.plugged import PluggedPredicate
from muarl.spec.predicate_kinds import (
    Called,
    Confirmed,
    Counted,
    JudgeSpec,
    NeverCalled,
    Preceded,
    PythonSpec,
    Said,
    Scaled,
    SqlValue,
    WorldAt,
)

Weight = Annotated[float, Field(gt=0, lt=1)]
Loc = tuple[str | int, ...]

_NAME_CHARS = 80


class SideTerm(Spec):
    """What a success may lose a little by."""

    weight: Weight
    """Share of the score."""
    when: PredicateSpec
    """Earns the share as far as it holds."""


class Weighted(Spec):
    """A success, less what its side terms lose; a failure stays below every success.

    With side terms of weights `w` and scores `s`, a success earns `1 - sum(w * (1 - s))`, and a
    failure `min(failure_cap, sum(w * s))`.
    """

    success: PredicateSpec
    """What a success is: that this holds wholly."""
    side: list[SideTerm] = Field(min_length=1)
    """What is also wanted; one that does not apply counts as holding."""
    failure_cap: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The most that side terms may earn without the success."""

    @model_validator(mode="after")
    def _failures_stay_below(self) -> Weighted:
        least = 1 - sum(term.weight for term in self.side)
        if least <= self.failure_cap:
            raise ValueError(
                f"a success may earn as little as {max(least, 0):.3g} and a failure as much as "
                f"{self.failure_cap:g}; let the weights and failure_cap add up to less than 1"
            )
        return self


class PredicateSpec(Spec):
    """Exactly one of these keys."""

    model_config = ConfigDict(
        json_schema_extra={"minProperties": 1, "maxProperties": 1},
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    gold_world: bool | None = None
    """The final world equals the world after the task's gold calls."""
    world: WorldAt | None = None
    """The value at a path of the final world."""
    scaled: Scaled | None = None
    """How good a number at a path of the final world is."""
    sql: SqlValue | None = None
    """What a query of the final world gives."""
    called: Called | None = None
    """A tool was called successfully."""
    never_called: NeverCalled | None = None
    """A tool was never called."""
    said: Said | None = None
    """The policy said something to the user."""
    never_said: Said | None = None
    """The policy never said something to the user."""
    count: Counted | None = None
    """How often something happened."""
    confirmed: Confirmed | None = None
    """Share of writes that the user confirmed."""
    preceded: Preceded | None = None
    """Share of calls that another call came before."""
    judge: JudgeSpec | None = None
    """What an LLM decides, with a quote."""
    python: PythonSpec | None = None
    """What a function of the domain decides."""
    plugin: PluggedPredicate | None = None
    """What an installed package decides: `{name: options}`; see docs/plugins.md."""
    all: Annotated[list[PredicateSpec], Field(min_length=1)] | None = None
    """Every one of these holds: the lowest score."""
    any: Annotated[list[PredicateSpec], Field(min_length=1)] | None = None
    """One of these holds: the highest score."""
    share: Annotated[list[PredicateSpec], Field(min_length=1)] | None = None
    """How much of these holds: the mean score, for partial credit."""
    not_: PredicateSpec | None = Field(None, alias="not")
    """This does not hold."""
    weighted: Weighted | None = None
    """A success, and side terms that it may lose a little by."""

    @model_validator(mode="after")
    def _exactly_one(self) -> PredicateSpec:
        given = self._given()
        if len(given) != 1:
            choices = ", ".join(map(_key, type(self).model_fields))
            got = ", ".join(map(_key, given)) or "none"
            raise ValueError(f"give exactly one of {choices}; got {got}")
        return self

    def _given(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    @property
    def kind(self) -> str:
        """The one key that is set."""
        return _key(self._given()[0])

    @property
    def value(self) -> Any:
        """What stands under it."""
        return getattr(self, self._given()[0])

    @property
    def name(self) -> str:
        """Short name for reports: the key and what tells it apart."""
        # What a share is made of may be another in each task; under one name it has a mean.
        told = () if self.share is not None else _telling(self.value)
        name = " ".join([self.kind, *told])
        return name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 3]}..."

    def parts(self) -> Iterator[tuple[Loc, PredicateSpec]]:
        """The predicates that this one is made of, and where they stand in it."""
        match self.value:
            case list() as parts:
                yield from (((self.kind, i), part) for i, part in enumerate(parts))
            case PredicateSpec() as part:
                yield (self.kind,), part
            case Weighted() as terms:
                yield (self.kind, "success"), terms.success
                for i, term in enumerate(terms.side):
                    yield (self.kind, "side", i, "when"), term.when

    def walk(self) -> Iterator[tuple[Loc, PredicateSpec]]:
        """This one and all it is made of, each with its place in it."""
        yield (), self
        for loc, part in self.parts():
            yield from (((*loc, *below), inner) for below, inner in part.walk())


def _key(field: str) -> str:
    """A field's key in a file: one of them is a word of Python's."""
    return field.removesuffix("_")


def _telling(value: Any) -> Iterator[str]:
    """What tells a predicate from others of its kind."""
    match value:
        case WorldAt() | Scaled():
            yield value.path
        case SqlValue():
            yield " ".join(value.query.split())
        case Called() | NeverCalled():
            yield value.tool
        case Said():
            yield repr(value.text)
        case Counted():
            yield value.of
        case Preceded():
            yield value.by
        case JudgeSpec():
            yield repr(value.criterion)
        case PythonSpec():
            yield value.function
        case PluggedPredicate():
            yield value.name
        case PredicateSpec():
            yield value.name
        case Weighted():
            yield value.success.name
        case list():
            yield f"({', '.join(part.name for part in value)})"


class RewardFile(Spec):
    """A file of predicates, to score stored episodes by: `muarl score --reward`."""

    version: Literal[1]
    """Version of this file's form."""
    reward: list[PredicateSpec] = Field(min_length=1)
    """All must hold for reward 1; stand in for the domain's and for those of every task."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored; default: those of the task, or of the domain."""
