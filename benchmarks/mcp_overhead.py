"""What a tool call costs through MCP: in memory, over stdio and over HTTP, beside a plain call.

    python benchmarks/mcp_overhead.py --json

One tool looks an order up in the world of a dialogue and answers with a line of text. It is called
directly, as the Python function it is, and through muarl's session over each transport: a server of
the official SDK in memory, the same server as a process of its own over stdio, and the same over
streamable HTTP on the loopback interface. Calls follow each other, as in one dialogue. Each figure
is the median of `calls`; `per_s_together` is how many calls a second 64 sessions make at once, and
`connect_ms` what opening and closing a session costs, process included for stdio. `stdio_world` is
stdio with the world read back after each call, as muarl does it for such servers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from _order_server import RESOURCE, WORLD, look_up, serve
from mcp import Client

from muarl.messages import ToolCall
from muarl.tools import ToolSession
from muarl.tools.carrier import Carrier, Limits
from muarl.tools.memory import MemoryToolServer
from muarl.tools.protocol import ToolServer
from muarl.tools.sdk_client import SdkClient
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.session import connected
from muarl.tools.stdio import MirrorToolServer, StdioToolServer
from muarl.world import World

SERVER = Path(__file__).with_name("_order_server.py")
TOGETHER = 64

Open = Callable[[], AbstractAsyncContextManager[ToolSession]]


@asynccontextmanager
async def http_server(command: list[str]) -> AsyncIterator[str]:
    """The server in a process of its own; where it listens."""
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        try:
            port = int(await process.stdout.receive())
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@asynccontextmanager
async def http_session(url: str) -> AsyncIterator[ToolSession]:
    """A session over streamable HTTP."""
    carrier = Carrier("HTTP server", Limits(), CrashLog("HTTP server"))
    async with connected(SdkClient(Client(url, cache=None)), carrier) as session:
        yield session


async def median_us(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """Median time of one call, after a few to warm up."""
    for _ in range(min(calls, 20)):
        await call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


async def one_call(session: ToolSession) -> None:
    result = await session.call(ToolCall("c", "get_order", {"order_id": "K07"}))
    assert result.content == "lamp, pending", result


async def measured(open_session: Open, calls: int, connects: int, together: int) -> dict[str, Any]:
    """One transport's figures."""
    async with open_session() as session:
        us = await median_us(lambda: one_call(session), calls)

    async def connect() -> None:
        async with open_session() as session:
            assert session.tools

    connect_us = await median_us(connect, connects)
    figures: dict[str, Any] = {"us": round(us, 1), "connect_ms": round(connect_us / 1000, 2)}
    if together:
        figures["per_s_together"] = round(await rate(open_session, calls, together))
    return figures


async def rate(open_session: Open, calls: int, together: int) -> float:
    """Calls a second of several sessions at once; only the calls are timed."""
    each = max(1, calls // together)
    async with AsyncExitStack() as stack:
        # All are opened and closed here; only the calls are made side by side.
        sessions = [await stack.enter_async_context(open_session()) for _ in range(together)]
        for session in sessions:
            await one_call(session)

        async def dialogue(session: ToolSession) -> None:
            for _ in range(each):
                await one_call(session)

        start = time.perf_counter()
        async with anyio.create_task_group() as live:
            for session in sessions:
                live.start_soon(dialogue, session)
        took = time.perf_counter() - start
    return together * each / took


async def measure(calls: int) -> dict[str, Any]:
    """All figures."""
    world = World(WORLD)
    tool = look_up(world)
    figures: dict[str, Any] = {
        "direct": {"us": round(await median_us(lambda: tool("K07"), calls), 2)}
    }

    def say(name: str) -> None:
        print(f"{name} ...", file=sys.stderr, flush=True)

    say("in memory")
    memory = MemoryToolServer(serve, stateless=True)
    figures["memory"] = await measured(
        lambda: memory.session(World(WORLD)), calls, min(calls, 200), TOGETHER
    )
    command = [sys.executable, str(SERVER), "stdio"]
    process = StdioToolServer(command, Path.cwd())
    servers: dict[str, ToolServer] = {
        "stdio": process,
        "stdio_world": MirrorToolServer(process, RESOURCE),
    }
    for name, stdio in servers.items():
        say(name)
        # 64 processes at once would measure how they share the cores.
        figures[name] = await measured(
            lambda s=stdio: s.session(World(WORLD)), calls, min(calls, 3), 0
        )
    say("http")
    async with http_server([*command[:-1], "http"]) as url:
        figures["http"] = await measured(
            lambda: http_session(url), calls, min(calls, 50), min(TOGETHER, calls)
        )
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = anyio.run(measure, args.calls)
    result = {
        "benchmark": "mcp_overhead",
        **{f"{name}_us": row["us"] for name, row in figures.items()},
        "figures": figures,
        "calls": args.calls,
        "together": TOGETHER,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "mcp": version("mcp"),
    }
    if args.json:
        print(json.dumps(result))
        return
    for name, row in figures.items():
        print(f"{name:12} {row}")


if __name__ == "__main__":
    main()
