"""An agent that plays a task's gold calls: what a run can be tried out with before there is a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec


class GoldExpert:
    """Makes the gold calls one by one, then says what must be said.

    Args:
        task: Has the gold calls, all of them the agent's.
        imperfections: Bad habits, of which it has none.

    Raises:
        ValueError: It is to have some.
    """

    def __init__(self, task: TaskSpec, imperfections: Mapping[str, float]) -> None:
        if imperfections:
            raise ValueError(f"this expert has no bad habits, so no {next(iter(imperfections))!r}")
        self._messages = _messages(task)

    def act(self, history: Sequence[Message]) -> Message:
        """The next call; after the last one what must be said, again and again."""
        del history
        return next(self._messages)


def _messages(task: TaskSpec) -> Iterator[Message]:
    for number, call in enumerate(task.gold):
        made = ToolCall(f"gold_{number}", call.tool, call.arguments)
        yield Message("assistant", "", tool_calls=(made,))
    wanted = [part.python for part in task.reward or () if part.python is not None]
    said = [text for part in wanted for text in part.says]
    while True:
        yield Message("assistant", "; ".join(said) or "Done.")
