"""What a policy's text is in an action space of Gymnasium's: a number, or the text itself.

A space is known by what it says of itself, as https://gymnasium.farama.org/api/spaces/ has it: `n` numbers
from `start`, or what it `contains`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from muarl.errors import ToolServerError

_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS = 18
"""No space has numbers of more."""
_SAID = {"Space", "Discrete", "Text"}
"""Spaces of Gymnasium whose actions a text can be."""


class NoAction:
    """A text is no action, and why."""

    def __init__(self, why: str) -> None:
        self.why = why


def refuse_unsayable(space: Any, choices: Sequence[str]) -> None:
    """Refuse a space in which no text can be an action.

    Args:
        space: An environment's `action_space`; None where it has none.
        choices: What its actions are called, if they have names.

    Raises:
        ToolServerError: Says which space it is, and what to do.
    """
    for kind in type(space).__mro__:
        if kind.__module__.startswith("gymnasium.spaces") and kind.__name__ not in _SAID:
            raise ToolServerError(
                f"the environment's actions are {str(space)[:80]}, and no text is one: wrap it so that a "
                "number or a text is (gymnasium.ActionWrapper)"
            )
    count = getattr(space, "n", None)
    if choices and count is not None and int(count) < len(choices):
        raise ToolServerError(
            f"the environment's actions are {str(space)[:80]}, and {len(choices)} choices are named; name "
            f"at most {int(count)}"
        )
    if choices and count is None and type(space).__name__ == "Text":
        raise ToolServerError(
            f"the environment's actions are {str(space)[:80]}, and choices name numbers; leave choices out"
        )


def action_of(said: str, space: Any, choices: Sequence[str]) -> Any:
    """The action that a text is, or a `NoAction`.

    Args:
        said: The policy's message, or the argument of its call.
        space: As it is now.
        choices: What its actions are called, if they have names.
    """
    start = int(getattr(space, "start", 0))
    if choices:
        known = [choice.casefold() for choice in choices]
        meant = said.strip().rstrip(".!").casefold()
        if meant in known:
            return start + known.index(meant)
        return NoAction(f"That is no action. Choose one of: {', '.join(choices)}.")
    if (count := getattr(space, "n", None)) is not None:
        number = _number(said)
        if number is not None and start <= number < start + int(count):
            return number
        return NoAction(
            f"That is no action. Say a number from {start} to {start + int(count) - 1}."
        )
    if callable(contains := getattr(space, "contains", None)) and not contains(said):
        return NoAction("That is no action that can be taken here.")
    return said


def _number(said: str) -> int | None:
    """The whole number that a text is. Of many digits it is none: Python refuses to read thousands."""
    meant = said.strip().rstrip(".")
    if len(meant) <= _DIGITS and _NUMBER.fullmatch(meant):
        return int(meant)
    return None
