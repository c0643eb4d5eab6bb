"""Which of a domain's tools the agent is shown, as a dialogue goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muarl.errors import ToolServerError, did_you_mean
from muarl.messages import ToolSpec
from muarl.spec import TaskSpec


class Offer:
    """The tools of one dialogue that the agent knows of.

    Attributes:
        tools: Those it is shown now: in the task's order, those that were shown later after the others;
            in their server's order where the task names none.

    Args:
        offered: All that the server offers.
        task: Says which of them are shown from the beginning.
        true_name: The server's name of a tool that is shown under another.

    Raises:
        ToolServerError: The task names a tool that there is none of.
    """

    def __init__(
        self, offered: Iterable[ToolSpec], task: TaskSpec, true_name: Callable[[str], str]
    ) -> None:
        self._offered = [(tool, true_name(tool.name)) for tool in offered]
        self._task = task.id
        self._known: list[str] | None = None
        if task.tools is not None:
            self._known = self._found(task.tools)
            for turn in task.turns:
                self._found(turn.shows)
        self.tools = self._shown()

    def show(self, names: Iterable[str]) -> bool:
        """Show more of them.

        Returns:
            Whether there is anything that was not shown before.
        """
        if self._known is None:
            return False
        more = [name for name in self._found(names) if name not in self._known]
        self._known += more
        self.tools = self._shown()
        return bool(more)

    def _shown(self) -> tuple[ToolSpec, ...]:
        if self._known is None:
            return tuple(tool for tool, _ in self._offered)
        place = {name: number for number, name in enumerate(self._known)}
        shown = [(place[name], tool) for tool, name in self._offered if name in place]
        return tuple(tool for _, tool in sorted(shown, key=lambda pair: pair[0]))

    def _found(self, names: Iterable[str]) -> list[str]:
        found = list(dict.fromkeys(names))
        there = {name for _, name in self._offered}
        for name in sorted(set(found) - there):
            raise ToolServerError(
                f"task {self._task!r} shows a tool {name!r}, which no server of its domain offers"
                f"{did_you_mean(name, there)}"
            )
        return found
