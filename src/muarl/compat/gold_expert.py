"""An agent that plays a task's gold calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec


class GoldExpert:
    """Makes the gold calls one by one, and says that it is done.

    Where the user has fixed messages the calls of each turn are one message: some turns have more calls
    than steps are allowed.

    Args:
        task: Has the gold calls.
        imperfections: Bad habits, of which it has none.
        done: What it says.

    Raises:
        ValueError: It is to have some.
    """

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], done: str = "Done."
    ) -> None:
        if imperfections:
            raise ValueError(f"this expert has no bad habits, so no {next(iter(imperfections))!r}")
        self._messages = _by_turns(task, done) if task.turns else _one_by_one(task, done)

    def act(self, history: Sequence[Message]) -> Message:
        """The next message of its own, whatever was said or answered."""
        del history
        return next(self._messages)


def _one_by_one(task: TaskSpec, done: str) -> Iterator[Message]:
    yield from (Message("assistant", "", (call,)) for _, call in _calls(task))
    while True:
        yield Message("assistant", done)


def _by_turns(task: TaskSpec, done: str) -> Iterator[Message]:
    for turn in range(len(task.turns)):
        if calls := tuple(call for of, call in _calls(task) if of == turn):
            yield Message("assistant", "", calls)
        yield Message("assistant", done)


def _calls(task: TaskSpec) -> Iterator[tuple[int, ToolCall]]:
    for number, gold in enumerate(task.gold):
        yield gold.turn, ToolCall(f"gold_{number}", gold.tool, gold.arguments)
