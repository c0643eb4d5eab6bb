"""A tool server whose calls somebody reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muarl.messages import ToolCall, ToolResult
from muarl.person import Person
from muarl.tools import ToolServer, ToolSession
from muarl.world import World


class Overheard:
    """The same server; each of its calls is read out, with its answer.

    Args:
        server: The server.
        person: Who reads them.
    """

    def __init__(self, server: ToolServer, person: Person) -> None:
        self._server = server
        self._person = person

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _Overheard(session, self._person)


class _Overheard:
    def __init__(self, session: ToolSession, person: Person) -> None:
        self._session = session
        self._person = person
        self.tools = session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        result = await self._session.call(call)
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        await self._person.hear(
            "", f"[{call.name or call.raw} {arguments}: {result.as_message().content}]"
        )
        return result
