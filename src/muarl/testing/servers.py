"""Tool servers for tests: a small sound one, and one for each way a server can break.

The process is `mcp_script.py`, which needs the standard library only and starts in the time that
Python takes. Its tools work on the world of the dialogue:

- `put(key, value)` writes a key and answers `ok`;
- `get(key)` answers with its value, as JSON;
- `environment()` answers with its environment, as JSON;
- `folder()` answers with its working folder.

A domain's own server in memory breaks by `broken_serve`; `FaultyToolServer` lets a share of all
dialogues meet a broken server of either kind.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from muarl.testing.plan import Fault as AnyFault
from muarl.testing.plan import FaultPlan
from muarl.tools.protocol import ToolServer, ToolSession
from muarl.world import World, plain

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from muarl.tools.memory import Serve

Fault = Literal[
    "raise_at_start",
    "hang_at_start",
    "rubbish",
    "raise_in_call",
    "die_in_call",
    "hang_in_call",
    "half_a_message",
    "invalid_utf8",
    "half_a_character",
    "oversized_result",
    "outlive",
    "other_world",
    "no_world",
    "not_json",
]
"""How a process breaks: it raises before it serves; never answers; writes to stdout what is no
message, and never answers; answers any call with an internal error; exits during any call; never
answers a call; exits in the middle of an answer; answers in bytes that are no UTF-8; in JSON that
holds half of a surrogate pair; with five million characters; ignores the end of its input and the
polite signal; starts from a world of its own; has no world to read; its world is no JSON."""

MemoryFault = Literal[
    "raise_at_start",
    "hang_at_start",
    "raise_in_call",
    "exit_in_call",
    "hang_in_call",
    "half_a_character",
    "oversized_result",
]
"""How a server in memory breaks: it cannot be built; never starts; any call of a tool raises what it
did not mean to; calls `sys.exit`; never answers; answers with half of a surrogate pair; or with five
million characters more than it should."""

HARMLESS = ("oversized_result", "half_a_character")
"""Faults of a server in memory that leave an answer the policy can read, cut or patched."""

WORLD_RESOURCE = "world://state"
"""Where these servers return their world."""

_OVERSIZED = 5_000_000


def sound_server() -> list[str]:
    """Command of a server that works."""
    return [sys.executable, str(Path(__file__).with_name("mcp_script.py"))]


def broken_server(fault: Fault) -> list[str]:
    """Command of a server that breaks in one way.

    Example:
        >>> limits = Limits(call_timeout_s=0.1)
        >>> server = StdioToolServer(broken_server("hang_in_call"), folder, limits=limits)
    """
    return [*sound_server(), fault]


def broken_serve(serve: Serve, fault: MemoryFault) -> Serve:
    """What builds the same server, but broken in one way.

    Args:
        serve: Builds an `MCPServer` over a world.
        fault: How it breaks.

    Example:
        >>> limits = Limits(call_timeout_s=0.1)
        >>> server = MemoryToolServer(broken_serve(serve, "hang_in_call"), limits=limits)
    """
    # The MCP SDK takes most of a second to import; only a test that needs it pays for it.
    from mcp.server.mcpserver import MCPServer

    def broken(world: World) -> MCPServer:
        if fault == "raise_at_start":
            raise RuntimeError("no database (injected)")
        server = serve(world)
        if not isinstance(server, MCPServer):
            raise TypeError(f"expected an MCPServer, got a {type(server).__name__}")
        if fault == "hang_at_start":
            return MCPServer(server.name, lifespan=_endless)
        call_tool = server.call_tool

        async def call(name: str, arguments: dict[str, Any], *more: Any) -> Any:
            if fault == "hang_in_call":
                await anyio.sleep_forever()
            answer = await call_tool(name, arguments, *more)
            if fault == "exit_in_call":
                sys.exit("the disk is full (injected)")
            if fault == "raise_in_call":
                raise RuntimeError("the database is gone (injected)")
            tail = "x" * _OVERSIZED if fault == "oversized_result" else "\ud83d"
            answer.content[0].text += tail  # type: ignore[union-attr]
            return answer

        vars(server)["call_tool"] = call
        return server

    return broken


@asynccontextmanager
async def _endless(_server: MCPServer) -> AsyncIterator[None]:
    await anyio.sleep_forever()
    yield


class FaultyToolServer:
    """A `ToolServer` of which a share of all sessions is broken.

    Which ones follows from the dialogue's world, as far as worlds differ; a dialogue that is tried
    again draws anew.

    Args:
        sound: The server itself.
        broken: The same server in each of the ways in which it may break.
        plan: Draws from these ways.

    Attributes:
        live: Sessions open now.

    Example:
        >>> broken = {"hang_in_call": MemoryToolServer(broken_serve(serve, "hang_in_call"))}
        >>> domain.server = FaultyToolServer(domain.server, broken, FaultPlan(broken, rate=0.2))
    """

    def __init__(
        self, sound: ToolServer, broken: Mapping[AnyFault, ToolServer], plan: FaultPlan[AnyFault]
    ) -> None:
        self._sound = sound
        self._broken = broken
        self._plan = plan
        self.live = 0

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        fault = self._plan.draw(repr(plain(world)))
        server = self._sound if fault is None else self._broken[fault]
        self.live += 1
        try:
            async with server.session(world) as session:
                yield session
        finally:
            self.live -= 1
