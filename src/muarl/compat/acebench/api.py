"""What the five classes have in common: a state, a language, and texts to answer with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeVar

Language = Literal["en", "zh"]
Texts = Mapping[Language, Mapping[str, str]]
Method = TypeVar("Method", bound=Callable[..., Any])


class Api:
    """An instance of a class: every public method can be called, also those that no task documents.

    Arguments come as the model wrote them and are not checked; what Python says about them is the
    answer. So names of classes, methods and parameters are upstream's.
    """

    texts: ClassVar[Texts] = {}

    def __init_subclass__(cls) -> None:
        kin = [base.__dict__.get("texts", {}) for base in reversed(cls.__mro__)]
        cls.texts = {
            language: {key: text for texts in kin for key, text in texts.get(language, {}).items()}
            for language in ("en", "zh")
        }

    def __init__(self, state: Any, language: Language) -> None:
        """Work on `state`: a part of a world, or plain JSON."""
        self._state = state
        self._texts = self.texts[language]

    def _say(self, key: str, **values: Any) -> str:
        return self._texts[key].format(**values)

    def _done(self, key: str, **values: Any) -> dict[str, Any]:
        return {"status": True, "message": self._say(key, **values)}

    def _refused(self, key: str, **values: Any) -> dict[str, Any]:
        return {"status": False, "message": self._say(key, **values)}


def only_in(language: Language) -> Callable[[Method], Method]:
    """Mark a method that upstream has in one language only."""

    def mark(method: Method) -> Method:
        method.only_in = language  # type: ignore[attr-defined]
        return method

    return mark


def tools_of(kind: type[Api], language: Language) -> frozenset[str]:
    """Names of the methods that a model can call."""
    return frozenset(
        name
        for name in dir(kind)
        if not name.startswith("_")
        and callable(method := getattr(kind, name))
        and getattr(method, "only_in", language) == language
    )
