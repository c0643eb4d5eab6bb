"""MCP servers that run as processes of their own, one for each dialogue.

The server finds the dialogue's world in a JSON file whose path stands in the environment variable
`MUARL_WORLD`. Its state is read back, after each call, from the resource that the domain names.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CONNECTION_CLOSED, TextResourceContents

from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.session import Carrier, Limits, McpSession, connected
from muarl.world import Json, MapNode, World, diff, equal, plain

WORLD_VARIABLE = "MUARL_WORLD"
"""Environment variable with the path of the dialogue's world."""

_LAST_LINES = 5
_LAST_BYTES = 4_000


class StdioToolServer:
    """A `ToolServer` that starts one process per dialogue and ends it with the dialogue.

    The process inherits `PATH`, the terminal's and the user's name, and nothing else of the
    environment; its home is an empty folder that is removed with it.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        world_resource: URI of a resource that returns the server's state as JSON. Without it the
            dialogue's world stays as it was, whatever the tools do.
        start_timeout_s: Seconds that starting and listing the tools may take.
        call_timeout_s: Seconds one call may take.
        max_result_chars: Longer results are cut, and say so.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        world_resource: str | None = None,
        start_timeout_s: float = 10.0,
        call_timeout_s: float = 10.0,
        max_result_chars: int = 20_000,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._world_resource = world_resource
        self._limits = Limits(start_timeout_s, call_timeout_s, max_result_chars)
        self._name = f"tool server `{shlex.join(command)}`"
        self._crashes = CrashLog(self._name)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        async with anyio.TemporaryDirectory(prefix="muarl-") as home:
            given = Path(home, "world.json")
            await anyio.Path(given).write_text(json.dumps(plain(world)), encoding="utf-8")
            said = _Said(Path(home, "stderr"))
            program, *arguments = self._command
            parameters = StdioServerParameters(
                command=program,
                args=arguments,
                cwd=self._folder,
                # The SDK passes HOME on unless it is replaced.
                env={"HOME": home, WORLD_VARIABLE: str(given)},
                encoding_error_handler="replace",
            )
            with said.file.open("w", encoding="utf-8") as stderr:
                client = Client(
                    stdio_client(parameters, errlog=stderr),
                    message_handler=said.hear,
                    cache=None,
                )
                carrier = Carrier(
                    self._name, self._limits, self._crashes, last_words=said.last_words
                )
                async with connected(client, carrier) as session:
                    if self._world_resource is None:
                        yield session
