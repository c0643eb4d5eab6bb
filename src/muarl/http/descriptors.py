"""As many open connections as the system allows."""

from __future__ import annotations

import sys


def allow_many_connections() -> None:
    """Raise this process's limit on open files to what the system lets it have.

    Each message in flight is a connection, and by default many systems stop a process at 1,024
    open files. Processes started later inherit the limit.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
