"""Tool servers that an installed package provides: held to what every tool server is held to."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import EpisodeError, PluginError, ToolServerError
from muarl.json_values import json_problem
from muarl.messages import ToolCall, ToolResult, ToolSpec, error_result
from muarl.spec.plugged import PluggedToolServer as Named
from muarl.tools.carrier import Carrier, Limits
from muarl.tools.plugin import ToolServerPlugin
from muarl.tools.protocol import ToolServer, ToolSession, sharing
from muarl.tools.results import cut
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.session import offered, unknown_tool
from muarl.world import World


class PluggedToolServer:
    """A `ToolServer` around one of a package, which is made when the first dialogue needs it.

    Args:
        named: As the domain names it.
        folder: The domain's.
        limits: What the domain allows it.
    """

    def __init__(self, named: Named, folder: Path, limits: Limits) -> None:
        self._named = named
        self._folder = folder
        self._server: ToolServer | None = None
        name = f"the tool server {named.name!r}"
        self._carrier = Carrier(name, limits, CrashLog(name))

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        server, seconds = self._made(), self._carrier.limits.start_timeout_s
        failure: Exception | None = None
        started = False
        try:
            # One scope around the whole session, since a scope may not end before a task group that
            # the package opens in it. Its deadline is lifted once the server has started.
            with anyio.CancelScope(deadline=anyio.current_time() + seconds) as starting:
                async with server.session(world) as session:
                    # No exception of the dialogue is the package's to see.
                    try:
                        tools = self._tools(session)
                        await anyio.lowlevel.checkpoint_if_cancelled()
                        starting.deadline, started = math.inf, True
                        yield _Session(session, tools, self._carrier)
                    except Exception as error:  # noqa: BLE001
                        failure = error
        except RAISED as error:  # boundary: the package raises anything
            # Cancelled, it may fail in other ways as well; then only the cancellation counts.
            await anyio.lowlevel.checkpoint_if_cancelled()
            let_others_pass(error)
            if failure is None:
                raise self._broken(error, started=started) from error
        if failure is not None:
            raise failure
        if starting.cancelled_caught:
            raise self._carrier.failure(
                f"did not start within {seconds:g} s (tools.start_timeout_s)"
            )

    def shared(self) -> AbstractAsyncContextManager[None]:
        """As of the server, if it can be had."""
        return sharing(self._made())

    def _made(self) -> ToolServer:
        if self._server is None:
            try:
                plugin = self._named.registered(ToolServerPlugin)
                made = plugin.make(self._named.options, self._folder)
            except PluginError as error:
                raise ToolServerError(str(error)) from error
            except RAISED as error:  # boundary: the package raises anything
                let_others_pass(error)
                raise self._carrier.failure(f"could not be built: {blame(error)}") from error
            if not callable(getattr(made, "session", None)):
                raise self._carrier.failure(
                    f"is a {type(made).__name__}, which has no `session(world)` "
                    "(muarl.plugins.ToolServer)"
                )
            self._server = made
        return self._server

    def _tools(self, session: ToolSession) -> tuple[ToolSpec, ...]:
        try:
            listed = list(session.tools)
            if not all(isinstance(tool, ToolSpec) for tool in listed):
                raise TypeError("its tools are not all a muarl.plugins.ToolSpec")
            for tool in listed:
                _check_tool(tool)
            if not callable(getattr(session, "call", None)):
                raise TypeError("its session has no `async def call` (muarl.plugins.ToolSession)")
        except RAISED as error:  # boundary: the package raises anything
            raise self._broken(error, started=False) from error
        return offered(listed, self._carrier)

    def _broken(self, error: BaseException, *, started: bool) -> EpisodeError:
        let_others_pass(error)
        if isinstance(error, EpisodeError):
            return error
        return self._carrier.failure(f"{'failed' if started else 'did not start'}: {blame(error)}")


def _check_tool(tool: ToolSpec) -> None:
    """Look at a tool of a package's.

    Raises:
        TypeError: It is in another form than it should be.
    """
    if not (isinstance(tool.name, str) and isinstance(tool.description, str)):
        raise TypeError(f"name and description of its tool {tool.name!r:.80} must be text")
    if not isinstance(tool.parameters, Mapping):
        raise TypeError(f"the parameters of its tool {tool.name!r:.80} must be a JSON Schema")
    if problem := json_problem([tool.name, tool.description, tool.parameters]):
        raise TypeError(f"its tool {tool.name!r:.80} is no JSON: {problem}")


class _Session:
    """A `ToolSession` around one of a package: what it raises is its fault, and said of it."""

    def __init__(self, session: ToolSession, tools: tuple[ToolSpec, ...], carrier: Carrier) -> None:
        self._session = session
        self._carrier = carrier
        self.tools = tools
        self._names = {tool.name for tool in tools}

    async def call(self, call: ToolCall) -> ToolResult:
        limits = self._carrier.limits
        if call.error is not None:
            return error_result(call, call.error)
        if call.name not in self._names and (not limits.verbatim or call.name in limits.hidden):
            return unknown_tool(call, self.tools)
        if problem := json_problem(call.arguments):
            return error_result(call, f"the arguments cannot be sent as JSON: {problem}")
        seconds = limits.seconds(call.name)
        with anyio.move_on_after(seconds):
            try:
                return self._read(call, await self._session.call(call))
            except EpisodeError:
                raise
            except RAISED as error:  # boundary: the package raises anything
                let_others_pass(error)
                why = f": {blame(error)}"
                if limits.on_crash == "fault":
                    raise self._carrier.failure(
                        f"crashed in a call of {call.name!r}{why}. Let it answer with an error what "
                        "the policy is to read, or set tools.on_crash to answer"
                    ) from error
                self._carrier.crashes.report(call.name, why)
                return error_result(call, f"tool {call.name!r} failed")
        raise self._carrier.failure(
            f"did not answer a call of {call.name!r} within {seconds:g} s (tools.call_timeout_s): see "
            "what it waits for, or give it longer"
        )

    def _read(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """What it answered, as an answer to this very call."""
        if not isinstance(result, ToolResult) or not isinstance(result.content, str):
            raise TypeError(
                f"it returned {result!r:.80}; expected a muarl.plugins.ToolResult with a text"
            )
        if problem := json_problem(result.content):
            raise TypeError(f"it returned no text that can be written down: {problem}")
        limits = self._carrier.limits
        text = cut(result.content, limits.chars(call.name))
        is_error = bool(result.is_error)
        return ToolResult(call.id, call.name, text, is_error, verbatim=is_error and limits.verbatim)
