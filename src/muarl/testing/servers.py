"""Tool servers for tests: a small sound one, and one for each way a server can break.

The process is `mcp_script.py`, which needs the standard library only and starts in the time that
Python takes. Its tools work on the world of the dialogue:

- `put(key, value)` writes a key and answers `ok`;
- `get(key)` answers with its value, as JSON;
- `environment()` answers with its environment, as JSON;
- `folder()` answers with its working folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

Fault = Literal[
    "raise_at_start",
    "hang_at_start",
    "rubbish",
    "die_in_call",
    "hang_in_call",
    "outlive",
    "other_world",
    "no_world",
    "not_json",
]
"""How a server breaks: it raises before it serves; never answers; writes to stdout what is no
message, and never answers; exits during any call; never answers a call; ignores the end of its
input and the polite signal; starts from a world of its own; has no world to read; its world is no
JSON."""

WORLD_RESOURCE = "world://state"
"""Where these servers return their world."""


def sound_server() -> list[str]:
    """Command of a server that works."""
    return [sys.executable, str(Path(__file__).with_name("mcp_script.py"))]


def broken_server(fault: Fault) -> list[str]:
    """Command of a server that breaks in one way.

    Example:
        >>> server = StdioToolServer(broken_server("hang_in_call"), folder, call_timeout_s=0.1)
    """
    return [*sound_server(), fault]
