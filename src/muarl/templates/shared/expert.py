"""A rule-based agent that shows how it is done: for the cold start of a model that cannot talk yet.

`muarl play` and `muarl rollout --expert` let it speak. It reads what the user and the tools say, as
the model will, and is not told the task. A model that can talk already needs no expert.
"""

import random
import re
from collections.abc import Mapping, Sequence

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

HABITS = ("quit", "skip_confirm")
"""Bad habits, each at a rate that the run file gives: what reinforcement learning is to mend.
`quit` says that it is done without having done it; `skip_confirm` does not ask for a yes."""

ORDER = re.compile(r"\b[A-Z]\d\d\b")


class Expert:
    """Plays the agent for one dialogue."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        if unknown := set(imperfections) - set(HABITS):
            raise ValueError(f"unknown habits {sorted(unknown)}; choose from {', '.join(HABITS)}")
        self.rates, self.rng = imperfections, rng
        self.order = ""
        self.calls = 0

    def act(self, history: Sequence[Message]) -> Message:
        """The next message, given the conversation so far."""
        last = history[-1]
        if last.role == "user":
            return self.hear(last.content)
        if last.name == "cancel_order" and last.content == "ok":
            return say("It is cancelled. Anything else?")
        if "pending" not in last.content:
            return say("Sorry, I cannot cancel it.")
        if self.lapses("skip_confirm"):
            return self.cancel()
        return say(f"Shall I cancel order {self.order}?")

    def hear(self, text: str) -> Message:
        """Answer the user: a number is looked up, anything else is taken for a yes."""
        if number := ORDER.search(text):
            self.order = number[0]
            return self.call("find_order")
        return self.cancel() if self.order else say("Which order is it?")

    def cancel(self) -> Message:
        """Do it, or only say so."""
        if self.lapses("quit"):
            return say("It is cancelled. Anything else?")
        return self.call("cancel_order")

    def call(self, tool: str) -> Message:
        """A message that calls a tool."""
        self.calls += 1
        call = ToolCall(id=f"call_{self.calls}", name=tool, arguments={"order_id": self.order})
        return Message(role="assistant", content="", tool_calls=(call,))

    def lapses(self, habit: str) -> bool:
        """Whether a bad habit shows."""
        return self.rng.random() < self.rates.get(habit, 0.0)


def say(text: str) -> Message:
    """A message to the user."""
    return Message(role="assistant", content=text)
