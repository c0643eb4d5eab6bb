"""What a session must know of its server: limits that the domain sets, and how to speak of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import anyio
import msgspec

from muarl.errors import ToolServerError
from muarl.spec.tools import ToolLimitsSpec
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.secrets import NO_SECRETS, Secrets


class Limits(msgspec.Struct, frozen=True):
    """What a domain allows a server.

    Attributes:
        start_timeout_s: Seconds that starting and listing the tools may take.
        call_timeout_s: Seconds one call may take.
        max_result_chars: Longer results are cut, and say so.
        on_crash: What a tool gives that raises what it did not mean to: a fault of the server, or
            an answer that says it failed.
        hidden: Tools that the policy does not see and cannot call.
        tools: Tool to limits of its own.
        verbatim: Results keep the white space of their JSON, and the server is asked even for a tool
            that it does not list.
    """

    start_timeout_s: float = 30.0
    call_timeout_s: float = 30.0
    max_result_chars: int = 20_000
    on_crash: Literal["fault", "answer"] = "fault"
    hidden: frozenset[str] = frozenset()
    tools: Mapping[str, ToolLimitsSpec] = {}
    verbatim: bool = False

    def seconds(self, tool: str) -> float:
        """How long a call of `tool` may take."""
        own = self.tools.get(tool)
        return self.call_timeout_s if own is None else own.call_timeout_s or self.call_timeout_s

    def chars(self, tool: str) -> int:
        """How long a result of `tool` may be."""
        own = self.tools.get(tool)
        return (
            self.max_result_chars if own is None else own.max_result_chars or self.max_result_chars
        )


DEFAULT_LIMITS = Limits()


class Carrier(msgspec.Struct, frozen=True):
    """What a session must know of its server.

    Attributes:
        name: How messages name the server.
        limits: Deadlines and sizes.
        crashes: Where crashes of its tools are told, once per tool.
        inside: Entered around everything the server does for this dialogue.
        last_words: What the server said last on its way out, "" if nothing.
        secrets: Taken out of what is said of it.
        waits: Told the scope of each wait for an answer; cancelled early, the answer was unreadable.
    """

    name: str
    limits: Limits
    crashes: CrashLog
    inside: Callable[[], AbstractContextManager[None]] = nullcontext
    last_words: Callable[[], str] = str
    secrets: Secrets = NO_SECRETS
    waits: Callable[[anyio.CancelScope], None] = lambda _scope: None

    def failure(self, what: str) -> ToolServerError:
        """The error that says what happened to the server, with its last words."""
        return ToolServerError(self.secrets.hide(f"{self.name} {what}{self.last_words()}"))
