"""Processes that all dialogues share, for servers that keep nothing between calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from muarl.errors import ToolServerError
from muarl.tools.session import McpSession
from muarl.tools.state import McpServer
from muarl.world import World


class PooledToolServer:
    """A `ToolServer` whose dialogues share a few sessions of another.

    Within `shared` at most `size` of them are open, and each is used by several dialogues at once;
    outside of it a dialogue has one for itself. One in which something failed is given to no further
    dialogue, and ends with its last.

    Args:
        server: Gives a session for any world, and keeps nothing between calls.
        size: Sessions at most.
    """

    def __init__(self, server: McpServer, size: int) -> None:
        self._server = server
        self._size = size
        self._lent: list[_Lent] = []
        self._keepers: TaskGroup | None = None

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Within the block sessions are shared; they are closed at its end."""
        if self._keepers is not None:
            yield
            return
        failure: Exception | None = None
        async with anyio.create_task_group() as keepers:
            self._keepers = keepers
            try:
                yield
            except Exception as error:  # noqa: BLE001
                failure = error  # out of the task group it would come wrapped in a group
            finally:
                self._keepers = None
                keepers.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        if self._keepers is None:
            async with self._server.session(world) as own:
                yield own
            return
        lent = self._next(self._keepers)
        lent.users += 1
        try:
            yield await lent.opened()
        except ToolServerError:
            self._retire(lent)
            raise
        finally:
            lent.users -= 1
            if lent.retired and not lent.users:
                lent.unused.set()

    def _next(self, keepers: TaskGroup) -> _Lent:
        """The session that fewest dialogues use; a new one while all are used and it is allowed."""
        least = min(self._lent, key=lambda lent: lent.users, default=None)
        if least is not None and (not least.users or len(self._lent) >= self._size):
            return least
        lent = _Lent()
        self._lent.append(lent)
        keepers.start_soon(self._keep, lent)
        return lent

    async def _keep(self, lent: _Lent) -> None:
        """Hold one session open until nobody may use it any more."""
        try:
            async with self._server.session(World({})) as lent.session:
                lent.settled.set()
                await lent.unused.wait()
        except ToolServerError as error:
            lent.failure = str(error)
        finally:
            self._retire(lent)
            lent.settled.set()

    def _retire(self, lent: _Lent) -> None:
        lent.retired = True
        if lent in self._lent:
            self._lent.remove(lent)


class _Lent:
    """One shared session."""

    def __init__(self) -> None:
        self.users = 0
        self.retired = False
        self.session: McpSession | None = None
        self.failure = ""
        self.settled = anyio.Event()
        self.unused = anyio.Event()

    async def opened(self) -> McpSession:
        """The session, once it is open.

        Raises:
            ToolServerError: It could not be opened.
        """
        await self.settled.wait()
        if self.session is None:
            raise ToolServerError(self.failure or "a shared tool server was closed meanwhile")
        return self.session
