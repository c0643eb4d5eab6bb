"""What is wrong in a model: where, and in words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from muarl.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a model.

    Attributes:
        loc: Path to the field.
        message: What is wrong, what was expected, what to do.
        at_key: The key at `loc` is wrong, not its value.
    """

    loc: tuple[str | int, ...]
    message: str
    at_key: bool = False

    def below(self, *above: str | int) -> Finding:
        """The same finding in a larger model that holds this one at `above`."""
        return Finding((*above, *self.loc), self.message, self.at_key)


def unknown(kind: str, name: str, choices: Collection[str]) -> str:
    """What to say about a name that refers to nothing."""
    known = ", ".join(choices) or "none"
    return f"unknown {kind} {name!r}{did_you_mean(name, choices) or f'; known: {known}'}"
