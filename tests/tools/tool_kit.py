"""What the tests of this room share."""

from __future__ import annotations

import os
import subprocess

from muarl.messages import ToolCall


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call_{tool}", tool, arguments)


def children() -> set[int]:
    """Processes that this one started and that are not gone, zombies included."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, check=True)
    rows = [line.split(None, 2) for line in table.stdout.decode().splitlines()]
    return {int(pid) for pid, parent, name in rows if int(parent) == os.getpid() and name != "ps"}
