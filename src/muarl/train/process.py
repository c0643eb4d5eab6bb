"""Processes by their numbers, and who can tell whether one lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def numbered_by() -> str:
    """What numbers this process: of processes with equal answers each can look at the other's number.

    A hostname would not do: containers have their own numbers and often the same name.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # no Linux
        return socket.gethostname()


def lives(process: int) -> bool:
    """Whether a process that is numbered by the same lives."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(process) != "Z"


def is_stopped(process: int) -> bool:
    """Whether it was stopped, as by Ctrl-Z or a debugger; False where nobody can say."""
    return _state(process) in ("T", "t")


def _state(process: int) -> str:
    """Z: it has ended and its parent has not asked after it yet; T, t: stopped; "" where nobody can say."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
