"""MCP servers that run as processes of their own, one for each dialogue.

A server that is written for muarl finds the dialogue's world in a JSON file whose path is the
environment variable `MUARL_WORLD`. What its tools make of it is read back after each call from the
resource the domain names.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.spec.tools import HOME, StateSpec
from muarl.tools.carrier import DEFAULT_LIMITS, Carrier, Limits
from muarl.tools.home import Home, home
from muarl.tools.sdk_client import SdkClient
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.secrets import NO_SECRETS, Secrets
from muarl.tools.session import McpSession, connected
from muarl.tools.state import parse_json
from muarl.world import Json, World, diff, overwrite

_AND_ALL_IT_STARTED = 'unset PWD OLDPWD SHLVL; trap : TERM; "$@"; kill -s KILL 0'
"""A shell that heads the process group of a server and ends it when the server has ended.

The SDK ends the group of a server that does not end by itself; one that does would leave behind what
it started. The shell outlives SIGTERM, so that it can see the server off."""

_PROGRAM = 3
"""Where the server's own program stands among the shell's arguments."""

WORLD_VARIABLE = "MUARL_WORLD"
"""Environment variable with the path of the dialogue's world."""


class StdioToolServer:
    """A `ToolServer` that starts one process per dialogue and ends it with the dialogue.

    Of the environment the process inherits `PATH`, `SHELL`, `TERM` and the user's name, nothing
    else; its `HOME` is a new folder that goes with it. Its `PATH` begins with the folder of the
    Python that runs muarl, so that `python` is that one. What it starts ends with it, but for what
    leaves its process group.

    Args:
        command: Program and arguments; `{home}` stands for its HOME.
        folder: Where it runs.
        env: Environment variables; `{home}` stands for its HOME.
        secrets: Environment variables that hold secrets.
        files: A folder whose content is copied into its HOME.
        limits: What the domain allows it.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        secrets: Secrets = NO_SECRETS,
        files: Path | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._env = dict(env or {})
        self._secrets = secrets
        self._files = files
        self._limits = limits
        self._name = f"tool server `{shlex.join(command)}`"
        self._crashes = CrashLog(self._name)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        with home(world, self._files, self._secrets) as own:
            carrier = Carrier(
                self._name,
                self._limits,
                self._crashes,
                last_words=own.last_words,
                secrets=self._secrets,
                waits=own.wait_in,
            )
            with anyio.CancelScope(shield=True) as spawning:
                transport = _spawned(self._parameters(own), own.stderr, spawning)
                client = Client(transport, message_handler=own.hear, cache=None)
                async with connected(SdkClient(client, self._secrets), carrier) as session:
                    yield session

    def _parameters(self, own: Home) -> StdioServerParameters:
        def placed(text: str) -> str:
            return text.replace(HOME, str(own.folder))

        command = [placed(part) for part in self._command]
        ours = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return StdioServerParameters(
            command="/bin/sh",
            args=["-c", _AND_ALL_IT_STARTED, "sh", *command],  # see `_PROGRAM`
            cwd=self._folder,
            # The SDK would pass on the HOME of this process.
            env={
                "PATH": ours,
                **{name: placed(value) for name, value in self._env.items()},
                **self._secrets.values,
                "HOME": str(own.folder),
                WORLD_VARIABLE: str(own.world),
            },
            # A message that is no UTF-8 shall not be read, rather than be read as another one;
            # the SDK's own choices replace its bytes, or let the call wait for its deadline.
        ).model_copy(update={"encoding_error_handler": "surrogateescape"})


@asynccontextmanager
async def _spawned(
    parameters: StdioServerParameters, stderr: TextIO, spawning: anyio.CancelScope
) -> AsyncIterator[tuple[Any, Any]]:
    """A process, whose start cannot be cancelled: asyncio would let it go without waiting for it.

    Args:
        parameters: What to start.
        stderr: Takes its stderr.
        spawning: A shielded scope around the session; it is opened once the process exists.

    Raises:
        FileNotFoundError: There is no such program.
    """
    program = parameters.args[_PROGRAM]
    if os.sep in program:  # as the shell will find it, from where it will run
        program = str(Path(parameters.cwd or "", program))
    if shutil.which(program, path=(parameters.env or {})["PATH"]) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    async with stdio_client(parameters, errlog=stderr) as streams:
        spawning.shield = False
        yield streams


class MirrorToolServer:
    """A `ToolServer` over one that starts from the dialogue's world and shows all of it.

    Args:
        server: The server.
        world_resource: URI of a resource that returns its state as JSON.
    """

    def __init__(self, server: StdioToolServer, world_resource: str) -> None:
        self._server = server
        self._source = StateSpec(resource=world_resource)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[MirrorSession]:
        async with self._server.session(world) as session:
            mirror = MirrorSession(session, self._source, world)
            await mirror.check_start()
            yield mirror


class MirrorSession:
    """A `ToolSession` that carries the server's state over into the dialogue's world."""

    def __init__(self, session: McpSession, source: StateSpec, world: World) -> None:
        self._session = session
        self._source = source
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
        what = f"a read of {self._source.resource!r} (tools.world_resource)"
        text = await self._session.fetch(self._source, "tools.world_resource")
        state = parse_json(self._session, text, what)
        if not isinstance(state, dict):
            raise self._session.failure(
                f"answered {what} with a {type(state).__name__}; expected a JSON object"
            )
        return state

    async def check_start(self) -> None:
        """Compare the server's state with the dialogue's world, before any call.

        Raises:
            ToolServerError: They differ: the task's own world would never reach the tools.
        """
        changes = diff(self._world, await self.final_world())
        if changes:
            raise self._session.failure(
                f"does not start from the dialogue's world ({changes[0]}, {len(changes)} "
                f"difference(s) in all); let it load the JSON file that {WORLD_VARIABLE} names"
            )
