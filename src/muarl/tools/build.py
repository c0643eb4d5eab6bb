"""From a domain's `tools` to its tool server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from muarl.spec.domain import ToolsSpec
from muarl.tools.protocol import ToolServer
from muarl.world import World


def tool_server(
    spec: ToolsSpec, folder: Path, base: World, load_python: Callable[[str], Any]
) -> ToolServer:
    """The server that `spec` declares; nothing is started or built yet.

    Args:
        spec: The domain's `tools`.
        folder: The domain's folder, where commands run.
        base: The domain's world before any task.
        load_python: Resolves a reference `file.py:name`.
    """
    # The MCP SDK takes most of a second to import; only a domain that is used pays for it.
    if spec.python is not None:
        from muarl.tools.memory import MemoryToolServer

        return MemoryToolServer(
            load_python(spec.python),
            stateless=spec.stateless,
            start_timeout_s=spec.start_timeout_s,
            call_timeout_s=spec.call_timeout_s,
            max_result_chars=spec.max_result_chars,
            on_crash=spec.on_crash,
        )
    if spec.sql is not None:
        from muarl.tools.memory import MemoryToolServer
        from muarl.tools.sql import sql_server
        from muarl.world.sql import SqlWorld

        assert isinstance(base, SqlWorld)  # the loader refuses tools in SQL over another world
        return MemoryToolServer(
            sql_server(spec.sql, base.database),
            stateless=True,
            start_timeout_s=spec.start_timeout_s,
            call_timeout_s=spec.call_timeout_s,
            max_result_chars=spec.max_result_chars,
            on_crash=spec.on_crash,
        )
    from muarl.tools.stdio import StdioToolServer

    assert spec.command is not None  # ToolsSpec holds exactly one source
    return StdioToolServer(
        spec.command,
        folder,
        world_resource=spec.world_resource,
        start_timeout_s=spec.start_timeout_s,
        call_timeout_s=spec.call_timeout_s,
        max_result_chars=spec.max_result_chars,
        on_crash=spec.on_crash,
    )
