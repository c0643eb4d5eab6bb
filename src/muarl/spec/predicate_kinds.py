"""What each kind of predicate is told: paths, tools, texts, criteria. `PredicateSpec` names one of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.spec.base import EnvName, PythonRef, Spec
from muarl.spec.calls import Who
from muarl.spec.pattern import pattern_problem
from muarl.spec.url import EndpointUrl
from muarl.spoken import MAX_CHARS, tokens

Count = Annotated[int, Field(ge=0)]


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


def _refuse_empty_range(least: int, most: int | None) -> None:
    if most is not None and most < least:
        raise ValueError(f"at_most {most} is below at_least {least}")
