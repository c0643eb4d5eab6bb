"""Several tool servers as one: their tools side by side, prefixed only where names clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import structs

from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult, ToolSpec, error_result
from muarl.tools.protocol import ToolServer, ToolSession, sharing
from muarl.tools.session import unknown_tool
from muarl.world import World

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
"""What names of functions do not hold in the chat formats of models."""


class SeveralToolServers:
    """A `ToolServer` made of several, each with a name.

    Args:
        servers: By name, in the order in which their tools are shown.
        strays: Which of them answers a call of a tool that none of them has; None: muarl does.
    """

    def __init__(self, servers: Mapping[str, ToolServer], strays: str | None = None) -> None:
        self._servers = servers
        self._strays = strays

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[SeveralSessions]:
        async with AsyncExitStack() as held:
            sessions = {
                name: await held.enter_async_context(server.session(world))
                for name, server in self._servers.items()
            }
            yield SeveralSessions(sessions, self._strays)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Within the block what dialogues may share of each server is kept."""
        async with AsyncExitStack() as held:
            for server in self._servers.values():
                await held.enter_async_context(sharing(server))
            yield


class SeveralSessions:
    """A `ToolSession` that gives each call to the server whose tool it is; `strays` as above.

    Raises:
        ToolServerError: Two tools have the same name even so.
    """

    def __init__(self, sessions: Mapping[str, ToolSession], strays: str | None = None) -> None:
        self._strays = None if strays is None else sessions[strays]
        clashes = Counter(tool.name for session in sessions.values() for tool in session.tools)
        self._homes: dict[str, tuple[ToolSession, str]] = {}
        tools: list[ToolSpec] = []
        for server, session in sessions.items():
            for tool in session.tools:
                name = tool.name
                if clashes[name] > 1:
                    name = f"{_NO_NAME.sub('_', server)}_{name}"
                if name in self._homes:
                    raise ToolServerError(
                        f"two tools are named {name!r}, one of them of the tool server {server!r}; "
                        "give the server another `name`"
                    )
                self._homes[name] = session, tool.name
                tools.append(structs.replace(tool, name=name))
        self.tools = tuple(tools)

    async def call(self, call: ToolCall) -> ToolResult:
        if call.error is not None:
            return error_result(call, call.error)
        home = self._homes.get(call.name)
        if home is None:
            if self._strays is not None:
                return await self._strays.call(call)
            return unknown_tool(call, self.tools)
        session, name = home
        result = await session.call(structs.replace(call, name=name))
        return structs.replace(result, name=call.name)
