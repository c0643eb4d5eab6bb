"""MCP servers that run in memory, in the task of the dialogue that calls them.

Write domain tools as `async def`: the SDK runs a plain `def` in a worker thread, where no deadline
can stop it and where virtual time does not see it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import UnexpectedToolError

from muarl.authors import RAISED, as_exceptions, blame, let_others_pass
from muarl.errors import ToolServerError
from muarl.messages import ToolSpec
from muarl.tools.carrier import DEFAULT_LIMITS, Carrier, Limits
from muarl.tools.in_process import InProcessClient
from muarl.tools.sdk_logs import CrashLog, root_logging_kept
from muarl.tools.session import McpSession, connected
from muarl.world import World, WorldProxy

Serve = Callable[[World], "MCPServer | Server[Any]"]
"""Builds a domain's MCP server over a world."""

_here: ContextVar[World | None] = ContextVar("muarl_world", default=None)

_contained: WeakSet[MCPServer] = WeakSet()


@contextmanager
def _at(world: World | None) -> Iterator[None]:
    """Within the block, and in what it starts, the shared world stands for `world`."""
    token = _here.set(world)
    try:
        yield
    finally:
        _here.reset(token)


def _current_world() -> World:
    world = _here.get()
    if world is None:
        raise ToolServerError(
            "the tool server read its world outside a call of a tool; with `stateless: true` it is "
            "built once for all dialogues: declare `stateless: false`, or read the world inside tools"
        )
    return world


class MemoryToolServer:
    """A `ToolServer` whose dialogues talk to an MCP server in memory.

    Building a server costs milliseconds, connecting to one a fraction of that. A stateless server
    is therefore built once and shared: the world it is given stands, in every call, for the world
    of the dialogue that calls.

    Example:
        >>> def serve(world):
        ...     mcp = MCPServer("orders")
        ...
        ...     @mcp.tool()
        ...     async def cancel(order: str) -> dict:
        ...         world["orders"][order]["status"] = "cancelled"
        ...         return world["orders"][order]
        ...
        ...     return mcp
        >>> server = MemoryToolServer(serve, stateless=True)

    Args:
        serve: Builds the server over a world.
        stateless: `serve` and its tools keep nothing outside the world, not even a part of it.
        limits: What the domain allows it.
    """

    def __init__(
        self,
        serve: Serve,
        *,
        stateless: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._serve = serve
        self._stateless = stateless
        self._limits = limits
        self._name = f"tool server {getattr(serve, '__name__', repr(serve))!r}"
        self._crashes = CrashLog(self._name)
        self._shared: Server[Any] | None = None
        self._shared_tools: tuple[ToolSpec, ...] | None = None

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        if not self._stateless:
            client = InProcessClient(self._build(world))
            async with connected(client, Carrier(self._name, self._limits, self._crashes)) as own:
                yield own
            return
        if self._shared is None:
            self._shared = self._build(WorldProxy(_current_world))
        client = InProcessClient(self._shared)
        carrier = Carrier(self._name, self._limits, self._crashes, lambda: _at(world))
        async with connected(client, carrier, self._shared_tools) as session:
            self._shared_tools = session.tools
            yield session

    def _build(self, world: World) -> Server[Any]:
        try:
            with root_logging_kept(), _at(None):
                server = self._serve(world)
        except ToolServerError:
            raise
        except RAISED as error:  # boundary: the author's code raises anything
            let_others_pass(error)
            raise ToolServerError(f"{self._name} could not be built: {blame(error)}") from error
        if not isinstance(server, (MCPServer, Server)):
            raise ToolServerError(
                f"{self._name} returned {type(server).__name__}; let it be a plain `def` that ends "
                "with `return server`, an mcp.server.MCPServer"
            )
        if isinstance(server, MCPServer):
            _contain(server)
            # The SDK's own client reaches into it as well; there is no other way to it.
            return server._lowlevel_server
        return server


def _contain(server: MCPServer) -> None:
    """Let a tool that would end the process crash like any other; it would end all dialogues."""
    if server in _contained:
        return
    _contained.add(server)
    call_tool = server.call_tool

    async def contained(name: str, *arguments: Any, **more: Any) -> Any:
        # Here, since a server may be given tools at any time.
        tool = server._tool_manager.get_tool(name)
        if tool is not None and not tool.is_async and not isinstance(tool.fn, _InThread):
            tool.fn = _InThread(tool.fn)
        try:
            return await call_tool(name, *arguments, **more)
        except Exception:
            raise
        except RAISED as error:
            let_others_pass(error)
            raise UnexpectedToolError(f"Error executing tool {name}") from error

    vars(server)["call_tool"] = contained


class _InThread:
    """A plain `def`, which the SDK runs in a thread, and which raises nothing but an `Exception` there.

    A GeneratorExit out of a thread would not reach the call: asyncio throws it into the task, and
    Python closes all coroutines in it instead of passing it through them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        with as_exceptions():
            return self._function(*arguments, **more)
