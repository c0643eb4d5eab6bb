"""An agent that plays the gold calls of a task with fixed messages, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec


class GoldExpert:
    """Makes all calls of a turn in one message, since one each would exceed the steps of some turns.

    Args:
        task: Has the gold calls.
        imperfections: Bad habits, of which it has none.

    Raises:
        ValueError: It is to have some.
    """

    def __init__(self, task: TaskSpec, imperfections: Mapping[str, float]) -> None:
        if imperfections:
            raise ValueError(f"this expert has no bad habits, so no {next(iter(imperfections))!r}")
        self._messages = _messages(task)

    def act(self, history: Sequence[Message]) -> Message:
        """The turn's calls, and a word when they are answered."""
        del history
        return next(self._messages)


def _messages(task: TaskSpec) -> Iterator[Message]:
    for turn in range(len(task.turns)):
        calls = tuple(
            ToolCall(f"gold_{number}", call.tool, call.arguments)
            for number, call in enumerate(task.gold)
            if call.turn == turn
        )
        if calls:
            yield Message("assistant", "", calls)
        yield Message("assistant", "Done.")
