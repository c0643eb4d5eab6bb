"""From a domain's `tools` to its tool server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from muarl.spec.tools import (
    CommandToolsSpec,
    PluginToolsSpec,
    PythonToolsSpec,
    SimulatedToolsSpec,
    SqlToolsSpec,
    ToolsSpec,
)
from muarl.tools.carrier import Limits
from muarl.tools.gated import GatedToolServer
from muarl.tools.protocol import ToolServer
from muarl.tools.secrets import Secrets


class LoadPython(Protocol):
    """Resolves a reference `file.py:name` of the server at an index of `tools`."""

    def __call__(self, reference: str, /, *, index: int) -> Any: ...


def tool_server(specs: Sequence[ToolsSpec], folder: Path, load_python: LoadPython) -> ToolServer:
    """The server that a domain declares, or all of them as one; nothing is started or built yet.

    Args:
        specs: The domain's `tools`.
        folder: The domain's folder, where commands run.
        load_python: Resolves what `python` names.
    """
    servers = {
        spec.label: _gated(spec, _server(spec, folder, partial(load_python, index=index)))
        for index, spec in enumerate(specs)
    }
    if len(servers) == 1:
        return next(iter(servers.values()))
    from muarl.tools.several import SeveralToolServers

    verbatim = (spec.label for spec in specs if spec.verbatim)
    return SeveralToolServers(servers, strays=next(verbatim, None))


def _gated(spec: ToolsSpec, server: ToolServer) -> ToolServer:
    return server if spec.at_once is None else GatedToolServer(server, spec.at_once)


def _server(spec: ToolsSpec, folder: Path, load_python: Callable[[str], Any]) -> ToolServer:
    # The MCP SDK takes most of a second to import; only a domain that is used pays for it.
    from muarl.tools.state import McpServer, StatefulToolServer

    limits = Limits(
        spec.start_timeout_s,
        spec.call_timeout_s,
        spec.max_result_chars,
        spec.on_crash,
        frozenset(spec.hidden),
        spec.limits,
        spec.verbatim,
    )
    if isinstance(spec, PluginToolsSpec):
        from muarl.tools.plugged import PluggedToolServer

        return PluggedToolServer(spec.plugin, folder, limits)
    server: McpServer
    if isinstance(spec, PythonToolsSpec):
        from muarl.tools.memory import MemoryToolServer

        server = MemoryToolServer(load_python(spec.python), stateless=spec.stateless, limits=limits)
    elif isinstance(spec, SqlToolsSpec):
        from muarl.tools.memory import MemoryToolServer
        from muarl.tools.sql import sql_server

        server = MemoryToolServer(sql_server(spec.sql), stateless=True, limits=limits)
    elif isinstance(spec, SimulatedToolsSpec):
        from muarl.tools.memory import MemoryToolServer
        from muarl.tools.simulated import client_of, simulated_server

        simulated = spec.simulated
        server = MemoryToolServer(
            simulated_server(simulated, partial(client_of, simulated)), limits=limits
        )
    elif isinstance(spec, CommandToolsSpec):
        from muarl.tools.stdio import MirrorToolServer, StdioToolServer

        server = process = StdioToolServer(
            spec.command,
            folder,
            env=spec.env,
            secrets=Secrets(spec.secrets),
            files=None if spec.files is None else folder / spec.files,
            limits=limits,
        )
        if spec.world_resource is not None:
            return MirrorToolServer(process, spec.world_resource)
        if spec.stateless:
            from muarl.tools.pool import PooledToolServer

            return PooledToolServer(process, spec.pool)
    else:
        from muarl.tools.remote import RemoteToolServer

        server = RemoteToolServer(
            spec.url, headers=spec.headers, secrets=Secrets(spec.secrets), limits=limits
        )
    if spec.setup or spec.state:
        return StatefulToolServer(server, spec.setup, spec.state)
    return server
