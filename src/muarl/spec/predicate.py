"""Predicates: what a reward or metric checks, as data.

Each predicate is a mapping with one key, which says its kind. Evaluation lives in `muarl.reward`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from muarl.spec.base import EnvName, PythonRef, Spec
from muarl.spec.calls import Who
from muarl.spec.pattern import pattern_problem
from muarl.spec.plugged import PluggedPredicate
from muarl.spec.url import EndpointUrl
from muarl.spoken import MAX_CHARS, tokens

Count = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, lt=1)]
Loc = tuple[str | int, ...]

_NAME_CHARS = 80


class ValueTest(Spec):
    """What a value must be: exactly one of these."""

    equals: Any = None
    """The value; `3` equals `3.0`. For null write `one_of: [null]`."""
    one_of: Annotated[list[Any], Field(min_length=1)] | None = None
    """One of these values."""
    matches: str | None = None
    """A regular expression found in the value, which must be text: `^W[0-9]{4}$`. In the syntax of
    Rust's `regex`, which takes linear time and knows no look-around."""
    changed: bool | None = None
    """Whether it is another than before the dialogue."""

    @model_validator(mode="after")
    def _one_test(self) -> ValueTest:
        tests = ("equals", "one_of", "matches", "changed")
        given = [name for name in tests if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(tests)}, got {', '.join(given) or 'none'}; "
                "for null write `one_of: [null]`"
            )
        if self.matches is not None and (problem := pattern_problem(self.matches)):
            raise ValueError(problem)
        return self


class WorldAt(ValueTest):
    """The final world's value at a path; a path that is not there holds no value."""

    path: str
    """Dotted path into the world, `orders.K41.status`. A key that holds dots may be in quotes,
    `prices."v1.2"`."""


class Scaled(Spec):
    """How good a number in the final world is, as a share of the way from `worst` to `best`.

    `(value - worst) / (best - worst)`, and 0 or 1 beyond them. No number there, or one that is not
    finite, is a fault of the predicate.
    """

    path: str
    """Dotted path into the world, `environment.return`."""
    worst: float = 0.0
    """The value that earns 0."""
    best: float = 1.0
    """The value that earns 1; it may be the smaller one."""

    @model_validator(mode="after")
    def _a_range(self) -> Scaled:
        if self.worst == self.best:
            raise ValueError(f"worst and best are both {self.best:g}; a share needs two values")
        return self


class SqlValue(ValueTest):
    """What a query of the final world gives, where the world is a database."""

    query: str
    """One SELECT. Its value is the first column of the first row, or null where there is no row."""
    parameters: dict[str, str | int | float | bool | None] = {}
    """Values for its `:name`, bound, never interpolated."""


class Called(Spec):
    """A tool was called without an error."""

    tool: str
    """Tool name."""
    by: Who = "agent"
    """Who called it: the agent, or the user on her own device."""
    arguments: dict[str, Any] = {}
    """Arguments the call must have had, among others."""
    before: str | None = None
    """A tool of the agent's, whoever called the other, whose first call must come later, if it is
    called at all."""
    at_least: Annotated[int, Field(ge=1)] = 1
    """How many such calls there must be."""
    at_most: Annotated[int, Field(ge=1)] | None = None
    """How many there may be."""

    @model_validator(mode="after")
    def _in_order(self) -> Called:
        _refuse_empty_range(self.at_least, self.at_most)
        return self


class NeverCalled(Spec):
    """A tool was never called, not even with an error."""

    tool: str
    """Tool name."""
    by: Who = "agent"
    """Whose calls are meant: the agent's, or the user's on her own device."""
    arguments: dict[str, Any] = {}
    """Only calls with these arguments, among others, are meant."""


class Said(Spec):
    """Some policy message to the user says something, word after word.

    Case, spacing and punctuation do not count; `$1,234.50` is `1234.5`, `March 3rd 2026` is
    `2026-03-03`; `5kg`, `5-7` and `5%` do not say `5`. In doubt `said` holds that it was not said, and
    `never_said` that it was. Text beside tool calls is not said: the user never reads it.
    """

    text: Annotated[str, Field(max_length=MAX_CHARS)]
    """What is looked for."""

    @model_validator(mode="after")
    def _says_something(self) -> Said:
        if not tokens(self.text):
            raise ValueError(f"{self.text!r} holds no word or number to look for")
        return self


class Counted(Spec):
    """How often the agent did something in the dialogue."""

    of: Literal["turns", "messages", "calls", "tool_errors", "questions"]
    """`turns`: policy messages; `messages`: those the user answered; `calls`: its tool calls;
    `tool_errors`: calls that were answered with an error; `questions`: messages the user answered
    that hold a question mark."""
    at_least: Count | None = None
    """How often at least."""
    at_most: Count | None = None
    """How often at most."""

    @model_validator(mode="after")
    def _a_limit(self) -> Counted:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most, or both")
        _refuse_empty_range(self.at_least or 0, self.at_most)
        return self


class Confirmed(Spec):
    """Share of successful write calls that directly follow a confirmation by the user.

    Needs a user whose replies carry acts. Applies only where a write was made.
    """

    tools: list[str] | None = None
    """Write tools to look at; default: the domain's `writes`."""


class Preceded(Spec):
    """Share of successful calls of some tools that were made once another had answered without an error.

    "Look an order up before you change it" is `preceded: {by: get_order, same: [order_id]}`. A
    call in the same message is too late: nobody had read its answer. Applies only where one of the tools
    was called.
    """

    by: str
    """The tool of the agent's that must have been called before."""
    tools: Annotated[list[str], Field(min_length=1)] | None = None
    """Tools that it must come before; default: the domain's `writes`."""
    same: list[str] = []
    """Arguments that both calls must have alike; those that the later call has."""


class JudgeSpec(Spec):
    """An LLM reads the dialogue and decides; it must quote the passage that it decides by.

    A ruling whose quote is not in the dialogue, word by word, is no ruling, and asked for again;
    without one, and without an endpoint, the dialogue ends in a fault, never in a score.
    """

    criterion: str = Field(min_length=1)
    """What must hold, as a sentence: "The agent said why the order cannot be returned."."""
    model: str
    """Model name sent to the endpoint."""
    base_url: EndpointUrl | None = None
    """OpenAI-compatible endpoint, `http://127.0.0.1:8000/v1`."""
    base_url_env: EnvName | None = None
    """Environment variable that holds it instead, so that the domain names no machine."""
    api_key_env: EnvName | None = None
    """Environment variable that holds the key; the key itself is never written anywhere."""
    max_tokens: Annotated[int, Field(gt=0)] = 512
    """Cap on one ruling."""
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds one ruling may take."""

    @model_validator(mode="after")
    def _one_endpoint(self) -> JudgeSpec:
        if (self.base_url is None) == (self.base_url_env is None):
            raise ValueError("give exactly one of base_url and base_url_env")
        return self


class PythonSpec(Spec):
    """A function of the domain's own."""

    function: PythonRef
    """`check(evidence, **arguments)`; returns whether it holds, a score in [0, 1], None where it
    does not apply, or one of these and a reason, and a caveat: what the score leaves out. `muarl.reward.Evidence` says what it is given."""
    arguments: dict[str, Any] = {}
    """Passed by name."""
    says: list[str] = []
    """Texts that it wants said to the user, as far as it does. `muarl check` says them where it makes
    the gold calls; dialogues are scored by the function alone."""


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


def _refuse_empty_range(least: int, most: int | None) -> None:
    if most is not None and most < least:
        raise ValueError(f"at_most {most} is below at_least {least}")


class RewardFile(Spec):
    """A file of predicates, to score stored episodes by: `muarl score --reward`."""

    version: Literal[1]
    """Version of this file's form."""
    reward: list[PredicateSpec] = Field(min_length=1)
    """All must hold for reward 1; stand in for the domain's and for those of every task."""
    metrics: list[PredicateSpec] | None = None
    """Observed, never scored; default: those of the task, or of the domain."""
