"""MCP servers that run as processes of their own, one for each dialogue.

The server finds the dialogue's world in a JSON file whose path is the environment variable
`MUARL_WORLD`. What its tools make of it is read back after each call from the resource the domain
names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import (
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextResourceContents,
)
from pydantic import ValidationError

from muarl.errors import ToolServerError
from muarl.json_values import json_problem
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.session import DEFAULT_LIMITS, Carrier, Limits, McpSession, SdkClient, connected
from muarl.world import Json, World, diff, overwrite, plain

WORLD_VARIABLE = "MUARL_WORLD"
"""Environment variable with the path of the dialogue's world."""

_HEADING = re.compile(r"Traceback \(most recent call last\)")
_MESSAGE = re.compile(r'\s*\{.*"jsonrpc"', re.DOTALL)
_LAST_LINES = 3
_LAST_BYTES = 4_000
_RUBBISH_CHARS = 80


class StdioToolServer:
    """A `ToolServer` that starts one process per dialogue and ends it with the dialogue.

    Of the environment the process inherits `PATH`, `SHELL`, `TERM` and the user's name, nothing
    else; its `HOME` is a new folder that goes with it.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        world_resource: URI of a resource that returns the server's state as JSON. Without it the
            dialogue's world stays as it was, whatever the tools do.
        limits: What the domain allows it.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        world_resource: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._world_resource = world_resource
        self._limits = limits
        self._name = f"tool server `{shlex.join(command)}`"
        self._crashes = CrashLog(self._name)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession | StdioSession]:
        with _home(world) as home:
            program, *arguments = self._command
            parameters = StdioServerParameters(
                command=program,
                args=arguments,
                cwd=self._folder,
                # The SDK would pass on the HOME of this process.
                env={"HOME": str(home.folder), WORLD_VARIABLE: str(home.world)},
                # A message that is no UTF-8 shall not be read, rather than be read as another one;
                # the SDK's own choices replace its bytes, or let the call wait for its deadline.
            ).model_copy(update={"encoding_error_handler": "surrogateescape"})
            carrier = Carrier(
                self._name,
                self._limits,
                self._crashes,
                last_words=home.last_words,
                waits=home.wait_in,
            )
            with anyio.CancelScope(shield=True) as spawning:
                transport = _spawned(parameters, home.stderr, spawning)
                client = SdkClient(Client(transport, message_handler=home.hear, cache=None))
                async with connected(client, carrier) as session:
                    if self._world_resource is None:
                        yield session
                    else:
                        stateful = StdioSession(session, carrier, self._world_resource, world)
                        await stateful.check_start()
                        yield stateful


@asynccontextmanager
async def _spawned(
    parameters: StdioServerParameters, stderr: TextIO, spawning: anyio.CancelScope
) -> AsyncIterator[tuple[Any, Any]]:
    """A process, whose start cannot be cancelled: asyncio would let it go without waiting for it.

    Args:
        parameters: What to start.
        stderr: Takes its stderr.
        spawning: A shielded scope around the session; it is opened once the process exists.
    """
    async with stdio_client(parameters, errlog=stderr) as streams:
        spawning.shield = False
        yield streams


class StdioSession:
    """A `ToolSession` that carries the server's state over into the dialogue's world."""

    def __init__(self, session: McpSession, carrier: Carrier, resource: str, world: World) -> None:
        self._session = session
        self._carrier = carrier
        self._resource = resource
        self._world = world

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        result = await self._session.call(call)
        overwrite(self._world, await self.final_world())
        return result

    async def final_world(self) -> dict[str, Json]:
        """The server's state now.

        Raises:
            ToolServerError: The resource does not return a JSON object.
        """
        request = ReadResourceRequest(params=ReadResourceRequestParams(uri=self._resource))
        what = f"a read of {self._resource!r} (tools.world_resource)"
        seconds = self._carrier.limits.call_timeout_s
        try:
            answer = await self._session.ask(request, ReadResourceResult, what, [], seconds)
        except MCPError as error:
            raise self._carrier.failure(f"refused {what}: {error.message}") from None
        texts = [item.text for item in answer.contents if isinstance(item, TextResourceContents)]
        try:
            state = json.loads("".join(texts))
        except (ValueError, RecursionError) as error:
            raise self._carrier.failure(f"answered {what} without valid JSON: {error}") from None
        if not isinstance(state, dict):
            raise self._carrier.failure(
                f"answered {what} with a {type(state).__name__}; expected a JSON object"
            )
        if problem := json_problem(state):
            raise self._carrier.failure(f"answered {what} with what is no JSON: {problem}")
        return state

    async def check_start(self) -> None:
        """Compare the server's state with the dialogue's world, before any call.

        Raises:
            ToolServerError: They differ: the task's own world would never reach the tools.
        """
        changes = diff(self._world, await self.final_world())
        if changes:
            raise self._carrier.failure(
                f"does not start from the dialogue's world ({changes[0]}, {len(changes)} "
                f"difference(s) in all); let it load the JSON file that {WORLD_VARIABLE} names"
            )


class _Home:
    """A server's files, and what it said outside the protocol."""

    def __init__(self, folder: Path, stderr: TextIO) -> None:
        self.folder = folder
        self.world = folder / "world.json"
        self.stderr = stderr
        self._rubbish: str | None = None
        self._waiting: anyio.CancelScope | None = None

    def wait_in(self, scope: anyio.CancelScope) -> None:
        """Cancel this scope when a message comes that cannot be read: it may be the answer."""
        self._waiting = scope

    async def hear(self, message: IncomingMessage) -> None:
        """Keep the first line of its output that is not a message; end waiting for a broken one."""
        if not isinstance(message, Exception):
            return
        line = str(message)
        if isinstance(message, ValidationError):
            line = str(message.errors(include_url=False)[0]["input"])
        meant_as_message = _MESSAGE.match(line) is not None
        if self._rubbish is None or meant_as_message:
            self._rubbish = line.encode("utf-8", "backslashreplace").decode()[:_RUBBISH_CHARS]
        if meant_as_message and self._waiting is not None:
            self._waiting.cancel()

    def last_words(self) -> str:
        words = ""
        if self._rubbish is not None:
            words += f"; it printed {self._rubbish!r} to stdout, where only MCP messages belong"
        # Not by its name, which whoever cleans up temporary files may have taken away.
        said = self.stderr.fileno()
        start = max(0, os.fstat(said).st_size - _LAST_BYTES)
        lines = os.pread(said, _LAST_BYTES, start).decode("utf-8", "replace").splitlines()
        last = [line.strip() for line in lines if line.strip(" ^~") and not _HEADING.match(line)]
        return words + (f"; its stderr ends: {' | '.join(last[-_LAST_LINES:])}" if last else "")


@contextmanager
def _home(world: World) -> Iterator[_Home]:
    """A folder for one server, with the dialogue's world in it.

    Raises:
        ToolServerError: The disk has no room for it.
    """
    with ExitStack() as held:
        try:
            # A server that was killed may leave children that still write here.
            folder = Path(
                held.enter_context(
                    tempfile.TemporaryDirectory(prefix="muarl-", ignore_cleanup_errors=True)
                )
            )
            stderr = held.enter_context((folder / "stderr").open("w+", encoding="utf-8"))
            home = _Home(folder, stderr)
            home.world.write_text(json.dumps(plain(world)), encoding="utf-8")
        except OSError as error:
            raise ToolServerError(
                f"no folder for a tool server in {tempfile.gettempdir()}: {error.strerror}. Make "
                "room there, or set TMPDIR"
            ) from error
        yield home
