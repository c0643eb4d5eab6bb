"""What the tests of this room share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import cache
from multiprocessing import resource_tracker

from muarl.messages import ToolCall


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call_{tool}", tool, arguments)


def children() -> set[int]:
    """Processes that this one started and that are not gone, zombies included.

    But for Python's own resource tracker: started by an engine in an earlier test, say, it lives as
    long as this process.
    """
    own = (os.getpid(), resource_tracker._resource_tracker._pid)
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, check=True)
    rows = [line.split(None, 2) for line in table.stdout.decode().splitlines()]
    return {
        int(pid)
        for pid, parent, name in rows
        if int(parent) == own[0] and int(pid) != own[1] and name != "ps"
    }


def no_python(reference: str, *, index: int) -> object:
    """For `tool_server`, where no server is built in memory."""
    raise AssertionError(f"nobody asked for {reference} of server {index}")


@cache
def time_to_start_s() -> float:
    """Seconds within which a server process has started for sure, on this machine as it is now."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    return max(1.0, round(20 * (time.monotonic() - begun), 1))
