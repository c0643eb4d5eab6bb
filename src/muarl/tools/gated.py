"""A tool server that is asked for so much at once and no more, whoever asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from muarl.gate import Gate, current_lane
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.tools.protocol import ToolServer, ToolSession, sharing
from muarl.world import World


class GatedToolServer:
    """A `ToolServer` that answers so many calls at once, over all dialogues.

    Calls beyond them wait, and tasks take turns (see `muarl.gate`). The wait is none of the call's:
    its own deadline begins after it.

    Args:
        server: The server.
        places: Calls at once.
    """

    def __init__(self, server: ToolServer, places: int) -> None:
        self._server = server
        self._gate = Gate(places)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _GatedSession(session, self._gate)

    def shared(self) -> AbstractAsyncContextManager[None]:
        """As of the server."""
        return sharing(self._server)


class _GatedSession:
    """A `ToolSession` whose calls go through the server's gate."""

    def __init__(self, session: ToolSession, gate: Gate) -> None:
        self._session = session
        self._gate = gate

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        async with self._gate.place(current_lane.get()):
            return await self._session.call(call)
