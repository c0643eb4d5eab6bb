"""Which of the policy's calls an agent makes, and in what order: frameworks know names and arguments only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import count, takewhile
from typing import Any

import anyio

from muarl.errors import AgentError
from muarl.messages import ToolCall, ToolSpec
from muarl.record import Turn
from muarl.world import equal


class OwnCalls:
    """The calls of one dialogue that an agent leads.

    Args:
        turns: Of the dialogue, as they come.
    """

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns
        self._claimed: set[str] = set()
        self._one = anyio.Lock()  # a world has one writer
        self._another_made = anyio.Event()

    def last_turn(self, to_do: str) -> Turn:
        """The turn that what an agent does belongs to.

        Raises:
            AgentError: There is none yet.
        """
        if not self._turns:
            raise AgentError(f"the agent cannot {to_do} before the policy has sampled a message")
        return self._turns[-1]

    def claim(self, call: ToolCall | str, arguments: Mapping[str, Any]) -> tuple[Turn, ToolCall]:
        """The turn that a call belongs to, and the call: the policy's, or one of the agent's own.

        Raises:
            AgentError: The policy has not sampled anything yet.
        """
        turn = self.last_turn("call a tool")
        if isinstance(call, ToolCall):
            turn = self._turn_of(call) or turn
        elif (meant := self._meant(call, arguments)) is not None:
            turn, call = meant
        else:
            call = ToolCall(self._own_id(turn), call, dict(arguments))
        self._claimed.add(call.id)
        return turn, call

    @asynccontextmanager
    async def in_order(
        self, turn: Turn, call: ToolCall, offered: Iterable[ToolSpec], patience_s: float
    ) -> AsyncIterator[None]:
        """Around the making of a call: one at a time, those of a message in its order.

        Args:
            turn: That it belongs to.
            call: The call.
            offered: Tools that can be called.
            patience_s: Seconds that it waits for those before it in its message.
        """
        names = {tool.name for tool in offered}
        with anyio.move_on_after(patience_s):
            while self._is_early(turn, call, names):
                await self._another_made.wait()
        async with self._one:
            yield

    def made(self, turn: Turn, call: ToolCall) -> None:
        """Note which call the turn's last result answers, where it is another than the message's."""
        answered = len(turn.results) - 1
        expected = turn.message.tool_calls[answered : answered + 1]
        if turn.made is None and not (expected and _is_same(expected[0], call)):
            turn.made = list(turn.message.tool_calls[:answered])
        if turn.made is not None:
            turn.made.append(call)
        self._another_made.set()
        self._another_made = anyio.Event()

    def _own_id(self, turn: Turn) -> str:
        numbers = count(len(turn.made or turn.message.tool_calls))
        ids = (f"own_{len(self._turns) - 1}_{number}" for number in numbers)
        return next(one for one in ids if one not in self._claimed)

    def _turn_of(self, call: ToolCall) -> Turn | None:
        """That of the message that made a call."""
        for turn in reversed(self._turns):
            if any(one.id == call.id for one in turn.message.tool_calls):
                return turn
        return None

    def _meant(self, name: str, arguments: Mapping[str, Any]) -> tuple[Turn, ToolCall] | None:
        """The call of the policy's that nobody has carried out yet, and that it stands for."""
        for turn in reversed(self._turns):
            if turn.reply is not None:
                return None
            for call in turn.message.tool_calls:
                same = call.name == name and equal(call.arguments, arguments)
                if same and call.error is None and call.id not in self._claimed:
                    return turn, call
        return None

    def _is_early(self, turn: Turn, call: ToolCall, names: set[str]) -> bool:
        """Whether a call before it in its message, which can be carried out, has not been."""
        calls = turn.message.tool_calls
        if not any(one.id == call.id for one in calls):
            return False
        answered = {result.call_id for result in turn.results}
        return any(
            one.id not in answered and one.error is None and one.name in names
            for one in takewhile(lambda one: one.id != call.id, calls)
        )


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls are one. To Python `true` is the number one; to a tool, it is not."""
    return one == other and equal(one.arguments, other.arguments)
