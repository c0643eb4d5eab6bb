"""A session of `tools_as_server` over stdio: what was asked is answered, though the client says no more.

The SDK drops what is under way when its input ends. So a client that writes its requests and closes, as
a pipe does, would miss the last answers.
"""

from __future__ import annotations

from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

Said = SessionMessage | Exception


class _Unanswered:
    """Requests that wait for an answer, by id."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = anyio.Event()

    def asked(self, said: Said) -> None:
        if isinstance(said, SessionMessage) and isinstance(said.message, JSONRPCRequest):
            number = said.message.id
            self._ids.add(number)

            async def settled() -> None:  # a request that is cancelled has no answer
                self._settle(number)

            said.metadata = ServerMessageMetadata(on_request_unanswered=settled)

    def answered(self, said: SessionMessage) -> None:
        if isinstance(said.message, (JSONRPCResponse, JSONRPCError)):
            self._settle(said.message.id)

    def _settle(self, number: Any) -> None:
        self._ids.discard(number)
        if not self._ids:
            self._none.set()

    async def none(self) -> None:
        """Wait until there is none."""
        while self._ids:
            self._none = anyio.Event()
            await self._none.wait()


async def serve_to_the_end(server: Server[Any], reading: Any, writing: Any) -> None:
    """Serve one client until it has no more to say and all that it asked is answered.

    Args:
        server: Its server.
        reading: What the client says; the SDK's stream.
        writing: Takes what is said to it; likewise.
    """
    unanswered = _Unanswered()

    async def hear(to_server: MemoryObjectSendStream[Said]) -> None:
        async with to_server:
            async for said in reading:
                unanswered.asked(said)
                await to_server.send(said)
            await unanswered.none()

    async def tell(from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server, writing:
            async for said in from_server:
                await writing.send(said)
                unanswered.answered(said)

    asking, asked = anyio.create_memory_object_stream[Said](0)
    answering, answered = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear, asking)
        tasks.start_soon(tell, answered)
        async with asked, answering:
            await server.run(asked, answering, server.create_initialization_options())
        tasks.cancel_scope.cancel()
