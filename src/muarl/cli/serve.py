"""Serve a domain's tools as an ordinary MCP server, for any client.

Each session has a fresh world: the domain's, or with `--task` that of a task. A client sees the tools
that a policy sees, by the same names. Over stdin and stdout a process is one session; with `--http` it
serves several, at http://127.0.0.1:PORT/mcp, on this machine only.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muarl.cli._answer import answer, lent_stdout
from muarl.cli._arguments import port
from muarl.errors import SetupError, SyncError, leaves

if TYPE_CHECKING:
    from mcp.server import Server

    from muarl.domain import Domain
    from muarl.spec import TaskSpec
    from muarl.tools import ToolSession
    from muarl.tools.serving import OpenTools
    from muarl.world import World

_HOST = "127.0.0.1"
_HEAD_S = 10.0
"""Seconds in which a client must have sent the head of a request."""
_GOODBYE_S = 1
"""Seconds that requests may still take when it ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("domain", type=Path, metavar="DOMAIN", help="a domain's folder or file")
    parser.add_argument("--task", metavar="ID", help="over the world of this task")
    parser.add_argument(
        "--http", type=port, metavar="PORT", help="streamable HTTP on the loopback; 0: a free port"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves, or Ctrl-C.

    Raises:
        SpecError: There is no such domain or task, or a world that only a task makes whole.
        SetupError: The port is taken.
        ToolServerError: The domain's own server does not start.
    """
    import anyio

    from muarl.cli._which import task_of
    from muarl.domain import load_domain
    from muarl.tools.serving import tools_as_server

    domain = load_domain(args.domain)
    task = None if args.task is None else task_of(domain, args.task)
    _world(domain, task)  # what no session could begin with is better known before anybody comes

    def new_server() -> Server[Any]:
        return tools_as_server(domain.spec.id, fresh_sessions(domain, task))

    if args.http is None:
        _until_the_client_is_gone(domain, new_server())
    else:
        anyio.run(_over_http, domain, new_server, args.http)
    return 0


def fresh_sessions(domain: Domain, task: TaskSpec | None) -> OpenTools:
    """What opens a session with the domain's tools over a fresh world, of a task or of none."""

    @asynccontextmanager
    async def fresh() -> AsyncIterator[ToolSession]:
        async with domain.server.session(_world(domain, task)) as session:
            yield session

    return fresh


def _world(domain: Domain, task: TaskSpec | None) -> World:
    """A fresh world for a session, with both sides in step."""
    from muarl.cli._which import all_tasks, wrong

    if task is not None:
        return domain.world_for(task)
    world = domain.base.fork()
    try:
        if domain.sync is not None:
            domain.sync(world)
    except SyncError as error:
        known = next((f", such as --task {known.id}" for known in all_tasks(domain)), "")
        message = f"without a task its world cannot begin; serve that of one{known}: {error}"
        raise wrong(domain, message) from error
    return world


def _until_the_client_is_gone(domain: Domain, server: Server[Any]) -> None:
    """Serve over stdin and stdout.

    Raises:
        SetupError: One of them broke: the client ended first, or its disk is full.
    """
    import anyio

    try:
        anyio.run(_over_stdio, domain, server)
    except* OSError as broken:
        found = [error for error in leaves(broken) if isinstance(error, OSError)]
        if any(error.filename is not None for error in found):  # of a file; pipes have no name
            raise
        why = found[0].strerror or found[0]
        raise SetupError(f"the client cannot be reached over stdin and stdout: {why}") from broken


async def _over_stdio(domain: Domain, server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    from muarl.cli._lines import Lines
    from muarl.tools.serving_stdio import serve_to_the_end

    stdin = Lines(None if sys.stdin is None else sys.stdin.fileno())
    # The SDK reads lines in a thread, which nothing can end while nobody writes; ours can be cancelled.
    lines = cast(Any, stdin)
    with lent_stdout():
        async with domain.sharing(), stdio_server(stdin=lines) as (reading, writing):
            # Else what a tool prints would lie in a buffer until stdout is itself again.
            with redirect_stdout(sys.stderr):
                await serve_to_the_end(server, reading, writing)


async def _over_http(domain: Domain, new_server: Any, port: int) -> None:
    import uvicorn

    from muarl.tools.prompt_http import heads_within
    from muarl.tools.serving_http import PATH, HttpSessions, loopback_only

    await domain.tools()  # what cannot start is better known before anybody comes
    try:
        listening = socket.create_server((_HOST, port))
    except OSError as error:
        raise SetupError(
            f"cannot listen on port {port}: {error.strerror}; choose another with --http"
        ) from error
    port = listening.getsockname()[1]
    sessions = HttpSessions(new_server, loopback_only(port))
    config = uvicorn.Config(
        sessions,
        http=heads_within(_HEAD_S),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GOODBYE_S,
    )
    answer(f"http://{_HOST}:{port}{PATH}")
    async with domain.sharing(), sessions.open():
        await uvicorn.Server(config).serve(sockets=[listening])
