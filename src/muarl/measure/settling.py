"""Which of a user's requests are settled, as a dialogue goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muarl.measure.transcript import Goal, ToolUse
from muarl.world.compare import equal

_BY_WORD = {"done", "refuse", "transfer"}


class Settling:
    """Requests are settled by what fulfils them, by a refusal, or by word that they are done.

    The user sees no tools: told that it is done, she has no reason to stay.

    Attributes:
        settled: Of each request, whether it is.
    """

    def __init__(self, goals: Sequence[Goal]) -> None:
        self._goals = goals
        self.settled = [False] * len(goals)
        self._announced = [False] * len(goals)
        self._made: dict[int, list[ToolUse]] = {}

    def used(self, uses: Iterable[ToolUse]) -> None:
        """Requests all of whose calls were made are settled, whoever made them."""
        for use in uses:
            if use.failed:
                continue
            for at, goal in enumerate(self._goals):
                if not self.settled[at] and any(_same(use, call) for call in goal.calls):
                    made = self._made.setdefault(at, [])
                    made.append(use)
                    self.settled[at] = all(any(_same(u, c) for u in made) for c in goal.calls)

    def said(self, cues: set[str], *, again: bool) -> None:
        """Take what a message of the agent does.

        One that says that something is done announces a request that is fulfilled already, if there is
        one; else it settles the next.

        Args:
            cues: What it does.
            again: The user objected to the last one: this one is about the same request.
        """
        if "transfer" in cues:
            self.settled = [True] * len(self._goals)
        elif cues & _BY_WORD and not again:
            self._settle_next()

    def _settle_next(self) -> None:
        for at in range(len(self._goals)):
            if self.settled[at] and not self._announced[at]:
                self._announced[at] = True
                return
        for at in range(len(self._goals)):
            if not self.settled[at]:
                self.settled[at] = self._announced[at] = True
                return


def _same(made: ToolUse, wanted: ToolUse) -> bool:
    return made.tool == wanted.tool and equal(made.arguments, wanted.arguments)
