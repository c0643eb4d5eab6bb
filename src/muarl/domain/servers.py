"""The tool servers of a domain's two sides: the agent's, and those of the user's own device.

The device's part of the world lies at `device` in the dialogue's world. So forks, differences, gold
worlds, predicates, records and replays know both sides as one world, and need no further case; only
the user's tools see no more than her part. After every call, of either side, the world is brought in step.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from muarl.domain.sync import Sync
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located
from muarl.spec.device import DEVICE, DeviceSpec
from muarl.tools import ToolServer, ToolSession, sharing, tool_server
from muarl.world import World, WorldProxy


def agent_server(
    located: Located[DomainSpec], python: PythonFolder, sync: Sync | None
) -> ToolServer:
    """The servers of the agent's tools.

    Args:
        located: The domain's file.
        python: Its Python.
        sync: Brings a world in step after each call; None where nothing is declared.

    Raises:
        SpecError: Python that the file names cannot be imported.
    """
    server = tool_server(
        located.spec.tools,
        located.path.parent,
        lambda ref, *, index: python.load(ref, ("tools", index, "python")),
    )
    return server if sync is None else _InStep(server, sync)


def device_server(
    located: Located[DomainSpec], spec: DeviceSpec, python: PythonFolder, sync: Sync | None
) -> ToolServer:
    """The servers of a user's tools, whose sessions are opened over the whole world.

    Args:
        located: The domain's file.
        spec: What it says of the device.
        python: The domain's Python.
        sync: As of `agent_server`.

    Raises:
        SpecError: Python that the file names cannot be imported.
    """
    server = tool_server(
        spec.tools,
        located.path.parent,
        lambda ref, *, index: python.load(ref, ("device", "tools", index, "python")),
    )
    if spec.world is not None:
        server = _OnDevice(server)
    return server if sync is None else _InStep(server, sync)


class _OnDevice:
    """A `ToolServer` whose tools see of a dialogue's world the device's part."""

    def __init__(self, server: ToolServer) -> None:
        self._server = server

    def session(self, world: World) -> AbstractAsyncContextManager[ToolSession]:
        return self._server.session(WorldProxy(lambda: world[DEVICE]))

    def shared(self) -> AbstractAsyncContextManager[None]:
        """As of what it is around."""
        return sharing(self._server)


class _InStep:
    """A `ToolServer` after whose every call the world is brought in step.

    Args:
        server: The tools of one side.
        sync: Does it.
    """

    def __init__(self, server: ToolServer, sync: Sync) -> None:
        self._server = server
        self._sync = sync

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _InStepSession(session, world, self._sync)

    def shared(self) -> AbstractAsyncContextManager[None]:
        """As of what it is around."""
        return sharing(self._server)


class _InStepSession:
    def __init__(self, session: ToolSession, world: World, sync: Sync) -> None:
        self._session = session
        self._world = world
        self._sync = sync

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        result = await self._session.call(call)
        self._sync(self._world)
        return result
