"""What stands behind a key: one dialogue, as the gateway sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from muarl.messages import Message, ToolResult, ToolSpec
from muarl.record import Turn


class WireError(Exception):
    """Why a request is not answered as it was meant.

    Attributes:
        status: HTTP status.
        code: Machine-readable reason.
        again: Whether the same request may do better later; clients are told.
    """

    def __init__(
        self, message: str, *, code: str = "invalid_request", status: int = 400, again: bool = False
    ) -> None:
        self.status = status
        self.code = code
        self.again = again
        super().__init__(message)


class Line(Protocol):
    """One dialogue: samples messages, makes calls."""

    @property
    def name(self) -> str:
        """Of its domain."""
        ...

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The domain's tools, as they are shown now."""
        ...

    @property
    def temperature(self) -> float:
        """That messages are sampled at."""
        ...

    async def say(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Turn:
        """Sample the next message of a conversation.

        Raises:
            WireError: The dialogue is over, or has a fault.
        """
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool of the domain.

        Raises:
            WireError: Likewise.
        """
        ...
