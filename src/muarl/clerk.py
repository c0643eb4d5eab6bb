"""An agent by rule at a counter: one wish after another, and a yes before anything is changed."""

from __future__ import annotations

import random
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from muarl.agent_script import AgentScript, Talk, ToolRefused
from muarl.spec import TaskSpec

YES = re.compile(r"^(yes|sure|ok|fine|please do|right|go on)\b", re.IGNORECASE)
"""What a scripted user answers who agrees."""


class Refused(Exception):
    """The rules forbid it; says which."""


class Wanted(Protocol):
    """One thing that a user wants, as a clerk read it."""

    @property
    def intent(self) -> str:
        """Names the clerk's method, `_cancel` for `cancel`, that sees to it."""


Wish = TypeVar("Wish", bound=Wanted)


class Clerk(AgentScript, Generic[Wish]):
    """Serves whoever asks by the rules of a house, for experts of domains.

    A subclass tells who asks (`identify`, `look`) and what she wants (`read`), and has a method `_INTENT` for
    each thing that she may want: it is given the wish, raises `Refused`, or returns what the user said last.

    Habits, each with a rate, make the demonstrations of a cold start imperfect in the ways that
    reinforcement learning is to mend: `skip_confirm` does not ask for a yes, `quit` says that it is done
    without having done it, `comply` keeps only those rules that the tools know.
    """

    habits = frozenset({"skip_confirm", "quit", "comply"})

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        """Prepare; the task is not looked at."""
        super().__init__(imperfections, rng)
        del task
        self._is_current = False

    @abstractmethod
    def identify(self) -> Talk[None]:
        """Find out who asks."""

    @abstractmethod
    def look(self) -> Talk[None]:
        """Look at who asks: before the first wish, and before a wish after something was changed."""

    @abstractmethod
    def read(self, heard: str) -> Wish | None:
        """What she wants by what she said, if anything."""

    @abstractmethod
    def forget(self, changed: Mapping[str, Any]) -> None:
        """A call with these arguments changed something that may have been looked up before."""

    def script(self, heard: str) -> Talk[None]:
        """Serve one wish after another."""
        yield from self.identify()
        while True:
            wish = self.read(heard)
            if wish is None:
                heard = yield from self.ask("What can I do for you?")
                continue
            if not self._is_current:
                yield from self.look()
                self._is_current = True
            try:
                heard = yield from getattr(self, f"_{wish.intent}")(wish)
            except (Refused, ToolRefused) as why:
                heard = yield from self.ask(f"Sorry, I cannot do that: {why}.")

    def forbid(self, broken: bool, why: str) -> None:
        """Keep a rule that no tool knows.

        Raises:
            Refused: It is broken.
        """
        if broken and not self.lapses("comply"):
            raise Refused(why)

    def change(self, summary: str, tool: str, **arguments: Any) -> Talk[str]:
        """Say what is to be done, and do it if the user says yes; what she says then."""
        if not self.lapses("skip_confirm"):
            answer = yield from self.ask(f"{summary}. Shall I go ahead?")
            if not YES.match(answer):
                return answer
        if not self.lapses("quit"):
            yield from self.use(tool, **arguments)
            self.forget(arguments)
            self._is_current = False
        return (yield from self.ask("Done. Anything else?"))
