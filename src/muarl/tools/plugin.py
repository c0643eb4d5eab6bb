"""Tool servers that an installed package provides: how one is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muarl.spec.plugin import O, Plugin
from muarl.tools.protocol import ToolServer


@dataclass(frozen=True)
class ToolServerPlugin(Plugin[O]):
    """A tool server that speaks no MCP, registered in the group `muarl.tool_servers`.

    Attributes:
        options: The model of what a spec may say to it.
        make: Makes the server, of options and the domain's folder; once for all dialogues, which have a
            session each. muarl sees to deadlines, hidden tools and long results; whether arguments are
            right is the session's to see, and to answer with an error where not.
    """

    make: Callable[[O, Path], ToolServer]

    group = "muarl.tool_servers"
