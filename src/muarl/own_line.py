"""A dialogue that an agent leads, as the gateway sees it: what it says of its end and of faults, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from muarl.errors import EpisodeError
from muarl.gate import current_lane
from muarl.gateway import WireError
from muarl.messages import Message, ToolResult, ToolSpec
from muarl.own_dialogue import LedDialogue
from muarl.own_loop import DialogueOver
from muarl.record import Turn

_PATIENCE_S = 1.0
"""Seconds that a call waits for those before it in its message. A framework makes them all at once, in
whatever order its tasks get to run; or leaves one out, such as one whose arguments it refuses itself."""


class DialogueLine:
    """One dialogue behind a key (`muarl.gateway.Line`)."""

    def __init__(self, dialogue: LedDialogue) -> None:
        self._dialogue = dialogue

    @property
    def name(self) -> str:
        return self._dialogue.domain_id

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._dialogue.offered

    @property
    def temperature(self) -> float:
        return self._dialogue.temperature

    async def say(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Turn:
        with self._over_the_wire():
            return await self._dialogue.sampled(messages, tools, max_tokens)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        with self._over_the_wire():
            _, result = await self._dialogue.called(name, dict(arguments), patience_s=_PATIENCE_S)
            return result

    @contextmanager
    def _over_the_wire(self) -> Iterator[None]:
        """Say the end of the dialogue, and its faults, as what clients do not try again."""
        current_lane.set(self._dialogue.lane)  # whose request this is: the task is the server's
        try:
            yield
        except DialogueOver as over:
            self._dialogue.end_agent_soon()
            raise WireError(
                f"the dialogue is over: {over.outcome.value}", code="dialogue_over", status=410
            ) from over
        except EpisodeError as fault:
            self._dialogue.end_agent_soon()
            raise WireError(
                f"{type(fault).__name__}: {fault}", code="episode_fault", status=503
            ) from fault
