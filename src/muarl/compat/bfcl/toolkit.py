"""What the eight classes share: state as JSON, functions, seeded draws, answers as upstream writes them."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from muarl.compat.bfcl.expressions import Functions, name_of, value_of
from muarl.compat.bfcl.upstream import Upstream
from muarl.world import plain

Method = TypeVar("Method", bound=Callable[..., Any])
Version = Literal["v3", "v4"]
State = MutableMapping[str, Any]

_FORBIDDEN = frozenset({"kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"})
"""Names that upstream refuses before it evaluates a text."""

_BEFORE_BRACKET = re.compile(r"\b([a-zA-Z_]\w*)\s+(?=\()")
"""Between a word and a bracket upstream drops what is blank, within texts, too."""
_NUMBER = re.compile(r"-?\d+")


class Answer(msgspec.Struct, frozen=True):
    """What a call gave.

    Attributes:
        text: What the caller reads, and the checker compares.
        is_error: Whether it is a refusal or an exception.
        by_python: Whether it is an exception: its text is the interpreter's own.
    """

    text: str
    is_error: bool = False
    by_python: bool = False


def function(*versions: Version) -> Callable[[Method], Method]:
    """Offer a method of an `Api` as a function.

    Args:
        versions: In which it is offered; none means both.
    """

    def mark(method: Method) -> Method:
        method.in_versions = versions or ("v3", "v4")  # type: ignore[attr-defined]
        return method

    return mark


class Api:
    """One class over its part of a dialogue's state.

    A key of the state that begins with `_` is private: the checker does not compare it.

    Attributes:
        MODULE: Under which name the upstream data has its tables and documents.
        LONG_CONTEXT: Whether the class knows of long contexts.
    """

    MODULE: ClassVar[str] = ""
    LONG_CONTEXT: ClassVar[bool] = False

    def __init__(self, state: State, upstream: Upstream, version: Version) -> None:
        """Work on `state`: a world, a part of one, or plain JSON; see `begin`."""
        self.state = state
        self.upstream = upstream
        self.version = version

    @classmethod
    def begin(cls, config: Mapping[str, Any], upstream: Upstream, *, long: bool) -> dict[str, Any]:
        """The state of an instance that is configured so; keys that the class does not know are dropped.

        Args:
            config: `initial_config` of an entry, for this class.
            upstream: Where defaults and long texts come from.
            long: Whether the entry is of the long-context category.
        """
        default = upstream.default_state(cls.MODULE)
        state = {key: plain(config.get(key, value)) for key, value in default.items()}
        if (seed := state.pop("random_seed", None)) is not None:
            state |= {"_seed": seed, "_draws": []}
        return state | ({"long_context": long} if cls.LONG_CONTEXT else {})

    def functions(self) -> Functions:
        """The functions of this version, by name."""
        return {
            name: getattr(self, name)
            for name, member in vars(type(self)).items()
            if self.version in getattr(member, "in_versions", ())
        }

    def public(self) -> dict[str, Any]:
        """What the checker compares: the state without what is private."""
        return {k: plain(v) for k, v in self.state.items() if not k.startswith("_")}

    def draw(self, method: Literal["randint", "uniform"], low: float, high: float) -> Any:
        """The next number of the instance's generator; what was drawn before is in the state."""
        generator = random.Random(self.state["_seed"])
        draws = self.state["_draws"]
        draws.append([method, low, high])
        value: Any = None
        for drawn, lowest, highest in draws:
            value = getattr(generator, drawn)(lowest, highest)
        return value


def refused(text: str) -> dict[str, Any]:
    """The answer of a function that will not."""
    return {"error": text}


def key_of(value: Any) -> str:
    """The key in our state of a new key in a Python dict: 1 is one, "1" is another.

    Whole numbers are written plainly, texts as they are unless they read like something else.

    Raises:
        TypeError: It cannot be hashed.
    """
    hash(value)
    if isinstance(value, str):
        is_like_another = _NUMBER.fullmatch(value) or value.startswith(("<", "'"))
        return f"'{value}'" if is_like_another else value
    return str(value) if type(value) is int else f"<{value!r}>"


def key_in(keys: Mapping[str, Any], value: Any) -> str | None:
    """The key that Python finds for a value, to which 1, True and 1.0 are one; None if there is none.

    Raises:
        TypeError: It cannot be hashed.
    """
    if (key := key_of(value)) in keys:
        return key
    if isinstance(value, str):
        return None
    return next((key for key in keys if python_key(key) == value), None)


def python_key(key: str) -> Any:
    """What `key_of` made a key of."""
    if _NUMBER.fullmatch(key):
        return int(key)
    if key.startswith("<"):
        return ast.literal_eval(key[1:-1])
    return key[1:-1] if key.startswith("'") else key


def answered(text: str, functions: Functions) -> Answer:
    """Make the call that a text says, as upstream answers it."""
    if (name := name_of(text)) in _FORBIDDEN:
        return _crashed(f"Function call {name} is not allowed.")
    try:
        result = plain_result(value_of(_BEFORE_BRACKET.sub(r"\1", text), functions))
        said = _said(result)
    except Exception as error:  # noqa: BLE001 - upstream's own boundary: the caller reads it
        return _crashed(str(error))
    return Answer(said, is_error=isinstance(result, dict) and "error" in result)


def plain_result(result: Any) -> Any:
    """A result without nodes of a world; what is no JSON is left as it is."""
    return result if isinstance(result, tuple) else plain(result)


def _said(result: Any) -> str:
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except TypeError:
            return str(result)
    return str(result)


def _crashed(text: str) -> Answer:
    return Answer(f"Error during execution: {text}", is_error=True, by_python=True)
