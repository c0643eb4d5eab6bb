"""What the MCP SDK logs while it works for a dialogue: heard, not shown.

The SDK logs a traceback for each call that crashes a tool, and building a server configures the root
logger. Over thousands of dialogues that is noise, and the root logger belongs to the host program.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

_muarl = logging.getLogger("muarl")
_log = logging.getLogger("muarl.tools")

_heard: ContextVar[list[BaseException] | None] = ContextVar("muarl_heard", default=None)


@contextmanager
def hearing(heard: list[BaseException] | None) -> Iterator[None]:
    """Within the block, `heard` holds the last exception that the SDK logged; nothing is shown.

    The rest of the program's use of the SDK is not touched, and with the logger `muarl` at DEBUG
    everything is shown as well. `hearing(None)` inside a block gives the SDK its voice back.
    """
    _install()
    token = _heard.set(heard)
    try:
        yield
    finally:
        _heard.reset(token)


def hear(error: BaseException) -> None:
    """What the SDK would have logged, told by us where we stand in for it."""
    heard = _heard.get()
    if heard is not None:
        heard[:] = [error]


class _Hear(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        heard = _heard.get()
        if heard is None:
            return True
        if record.exc_info and record.exc_info[1] is not None:
            heard[:] = [record.exc_info[1]]
        return _muarl.isEnabledFor(logging.DEBUG)


@cache
def _install() -> None:
    # A filter on a parent logger does not see its children's records.
    hear = _Hear()
    for name in list(logging.root.manager.loggerDict):
        if name == "mcp" or name.startswith("mcp."):
            logging.getLogger(name).addFilter(hear)


@contextmanager
def root_logging_kept() -> Iterator[None]:
    """Within the block, building an `MCPServer` does not configure the root logger."""
    # `logging.basicConfig`, which the SDK calls, does nothing once the root has a handler.
    guard = logging.NullHandler()
    logging.root.addHandler(guard)
    try:
        yield
    finally:
        logging.root.removeHandler(guard)


class CrashLog:
    """Says once for each tool of a server that it crashed, and why."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._said: set[str] = set()

    def report(self, tool: str, why: str) -> None:
        """Log the first crash of `tool`; `why` is put after "crashed"."""
        if tool not in self._said:
            self._said.add(tool)
            _log.error(
                "%s: tool %r crashed%s (its next crashes are not logged)", self._server, tool, why
            )
