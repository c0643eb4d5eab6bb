"""An agent by rule, written as one generator: its code reads like the conversation that it holds.

A state machine has to remember where it was; a generator waits there.
"""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

from muarl.messages import Message, ToolCall

T = TypeVar("T")
Talk = Generator[Message, Message, T]
"""A part of a conversation: it yields the agent's messages, is sent what answered each, and returns
what came of it."""


class ToolRefused(Exception):
    """A tool answered with an error; holds its words."""


class AgentScript(ABC):
    """An agent whose whole conversation is the generator `script`, for domains' experts.

    Attributes:
        rng: Draws whether bad habits show.

    Example:
        >>> class Expert(AgentScript):
        ...     def script(self, heard):
        ...         found = yield from self.use("get_order", order_id=heard)
        ...         answer = yield from self.ask(f"Cancel the {found['item']}. Shall I go ahead?")
        ...         if answer == "yes":
        ...             yield from self.use("cancel_order", order_id=heard)
        ...         yield from self.ask("Anything else?")
        >>> agent = Expert({}, random.Random(0))
        >>> agent.act([Message("user", "W17")]).tool_calls[0].arguments
        {'order_id': 'W17'}
        >>> agent.act([Message("tool", '{"item": "lamp"}', name="get_order")]).content
        'Cancel the lamp. Shall I go ahead?'
    """

    habits: frozenset[str] = frozenset()
    """Bad habits that it knows; see `lapses`."""

    def __init__(self, imperfections: Mapping[str, float], rng: random.Random) -> None:
        """Prepare.

        Args:
            imperfections: Bad habits to their rates.
            rng: Draws whether they show.

        Raises:
            ValueError: It has no such habit.
        """
        if unknown := sorted(set(imperfections) - self.habits):
            known = ", ".join(sorted(self.habits)) or "none"
            raise ValueError(f"unknown imperfections {unknown}; choose from {known}")
        self.rng = rng
        self._rates = imperfections
        self._talk: Talk[None] | None = None
        self._calls = 0

    @abstractmethod
    def script(self, heard: str) -> Talk[None]:
        """Hold the conversation, whose first message is `heard`; it must not end before the user does."""

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        if self._talk is None:
            self._talk = self.script(history[-1].content)
            return next(self._talk)
        return self._talk.send(history[-1])

    def ask(self, text: str) -> Talk[str]:
        """Say something to the user; what she answers."""
        answer = yield Message("assistant", text)
        return answer.content

    def use(self, tool: str, **arguments: Any) -> Talk[Any]:
        """Call a tool; what it answers, read as JSON where it is.

        Raises:
            ToolRefused: It answered with an error.
        """
        self._calls += 1
        call = ToolCall(f"call_{self._calls}", tool, arguments)
        answer = (yield Message("assistant", "", (call,))).content
        if answer.startswith("Error: "):
            raise ToolRefused(answer.removeprefix("Error: "))
        try:
            return json.loads(answer)
        except ValueError:
            return answer

    def lapses(self, habit: str) -> bool:
        """Whether a bad habit shows this time."""
        return self.rng.random() < self._rates.get(habit, 0.0)
