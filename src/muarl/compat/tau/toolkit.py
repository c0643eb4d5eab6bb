"""How the environments of tau-bench call tools, and what they make of results and exceptions.

Neither validates arguments: they go to Python as keywords, and what Python says about them is the
answer. What a tool wrote before it failed stays written.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from muarl.world import plain
from muarl.world.compare import is_list, is_map

Method = TypeVar("Method", bound=Callable[..., Any])


class Refused(ValueError):
    """What a tool says when it will not do something."""


class Answer(msgspec.Struct, frozen=True):
    """What a call gave.

    Attributes:
        text: What the caller reads.
        is_error: Whether upstream flags it as an error.
        by_python: Whether the text is the interpreter's own: a wrong argument, an unhashable key.
    """

    text: str
    is_error: bool = False
    by_python: bool = False


def tool(*, writes: bool = False) -> Callable[[Method], Method]:
    """Offer a method of a `Toolkit` as a tool.

    Args:
        writes: Whether the official evaluator runs it again when it rebuilds the final state.
    """

    def mark(method: Method) -> Method:
        method.tool_writes = writes  # type: ignore[attr-defined]
        return method

    return mark


class Toolkit(ABC):
    """Tools over the state of one dialogue.

    Attributes:
        writing: Names of all tools, to whether they write.
    """

    writing: ClassVar[Mapping[str, bool]] = {}

    def __init_subclass__(cls) -> None:
        marked = {
            name: method.tool_writes
            for kin in reversed(cls.__mro__)
            for name, method in vars(kin).items()
            if hasattr(method, "tool_writes")
        }
        cls.writing = {name: writes for name, writes in marked.items() if getattr(cls, name, None)}

    def __init__(self, db: Any) -> None:
        """Work on `db`: a world, a part of one, or plain JSON."""
        self.db = db

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool as upstream does."""
        if name not in self.writing:
            return Answer(self.unknown(name), is_error=True)
        try:
            result = getattr(self, name)(**arguments)
        except Exception as error:  # noqa: BLE001 - upstream's own boundary: the caller reads it
            return Answer(f"Error: {error}", True, not isinstance(error, Refused))
        return self.answer(result)

    @abstractmethod
    def unknown(self, name: str) -> str:
        """What is said about a tool that is not there."""

    @abstractmethod
    def answer(self, result: Any) -> Answer:
        """What the caller reads of a result."""


class Tau1Toolkit(Toolkit):
    """tau-bench: errors are texts that begin with `Error`; results are JSON of the raw object."""

    def unknown(self, name: str) -> str:
        return f"Unknown action {name}"

    def answer(self, result: Any) -> Answer:
        text = result if isinstance(result, str) else json.dumps(plain(result))
        return Answer(text, is_error=text.startswith("Error"))


class Bare(dict[str, Any]):
    """A dict that upstream builds of bare values: its numbers and truth values are read as texts."""


class Tau2Toolkit(Toolkit):
    """tau2-bench: errors are flagged; models are dumped, bare numbers in a dict or list are texts."""

    def unknown(self, name: str) -> str:
        return f"Error: Tool '{name}' not found."

    def answer(self, result: Any) -> Answer:
        if isinstance(result, str):
            return Answer(result)
        return Answer(json.dumps(_as_tau2(result), default=str))


def _as_tau2(value: Any) -> Any:
    if isinstance(value, Bare):
        return {
            key: str(item) if isinstance(item, (bool, int, float)) else _as_tau2(item)
            for key, item in value.items()
        }
    return plain(value) if is_map(value) or is_list(value) else value
