"""The protocols between a dialogue and its tools."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol, runtime_checkable

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.world import World


class ToolSession(Protocol):
    """One dialogue's connection to a tool server; opened and closed by the same task (law L7)."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What the server offers, in its order."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call. Unknown tools, bad arguments and tool errors are results, not exceptions.

        Raises:
            ToolServerError: The server died or hung.
        """
        ...


class ToolServer(Protocol):
    """Gives each dialogue a session over its own world."""

    def session(self, world: World) -> AbstractAsyncContextManager[ToolSession]:
        """Connect; tools called through the session read and write `world`.

        Raises:
            ToolServerError: The server did not start.
        """
        ...


@runtime_checkable
class Sharing(Protocol):
    """A `ToolServer` of which dialogues share what is costly to start."""

    def shared(self) -> AbstractAsyncContextManager[None]:
        """Within the block it is shared, and closed at the end; outside each starts its own."""
        ...


def sharing(server: ToolServer) -> AbstractAsyncContextManager[None]:
    """Within the block, dialogues share what they may of a server; see `Sharing`."""
    return server.shared() if isinstance(server, Sharing) else nullcontext()
