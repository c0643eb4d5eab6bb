"""One dialogue's session with an MCP server, whatever carries it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import anyio
import anyio.lowlevel
import httpx2
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    Request,
    Result,
    TextResourceContents,
)
from pydantic import ValidationError

from muarl.authors import MAX_CHARS, blame
from muarl.errors import ToolServerError, did_you_mean
from muarl.messages import ToolCall, ToolResult, ToolSpec, error_result
from muarl.spec.tools import StateSpec
from muarl.tools.carrier import Carrier
from muarl.tools.results import cut, error_text, is_crash, result_text
from muarl.tools.returned import said_of
from muarl.tools.sdk_logs import hearing

_NAME_CHARS = 80
_MOST_TOOLS = 4096
"""That a server may list, so that a list without end has one."""
_CLOSED = ("Connection closed", "SSE stream ")
"""What the SDK's own words begin with where there will be no answer any more."""
_SAID_CHARS = 500
"""Of an error that muarl's own call was answered with."""

_NOT_OF_THE_CALL = (INVALID_REQUEST, PARSE_ERROR, METHOD_NOT_FOUND, -32001)
"""Codes of protocol errors that no call of a listed tool is to blame for; -32001 is what servers over
HTTP say of a session they do not know any more."""

AnyRequest = Request[Any, Any]
Answer = TypeVar("Answer", bound=Result)


class McpClient(Protocol):
    """What carries requests to a server, while it is entered."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    async def send(self, request: AnyRequest, answer: type[Answer], /) -> Answer:
        """The answer to a request.

        Raises:
            MCPError: The server answered with a protocol error, or is gone.
            ValidationError: It answered with something else.
        """
        ...

    async def list_tools(self, cursor: str | None, /) -> ListToolsResult:
        """A page of the tools it offers; the first one if `cursor` is None."""
        ...


class McpSession:
    """A `ToolSession` over a connected MCP client."""

    def __init__(self, client: McpClient, tools: tuple[ToolSpec, ...], carrier: Carrier) -> None:
        self._client = client
        self._carrier = carrier
        self.tools = tools
        self._names = {tool.name for tool in tools}

    async def call(self, call: ToolCall) -> ToolResult:
        if call.error is not None:
            return error_result(call, call.error)
        limits = self._carrier.limits
        known = call.name in self._names
        if not known and (not limits.verbatim or call.name in limits.hidden):
            return unknown_tool(call, self.tools)
        try:
            request = _request(call)
        except (ValueError, RecursionError) as error:
            return error_result(call, f"the arguments cannot be sent as JSON: {error}")
        heard: list[BaseException] = []
        what = f"a call of {call.name!r}"
        limit = limits.chars(call.name)
        try:
            result = await self.ask(request, CallToolResult, what, heard, limits.seconds(call.name))
        except MCPError as error:
            if heard or error.code == INTERNAL_ERROR:
                return self._crashed(call, heard, cut(error.message, limit))
            if error.code in _NOT_OF_THE_CALL:
                raise self._carrier.failure(f"refused {what}: {error.message}") from None
            return error_result(call, cut(error.message, limit))
        if not result.is_error:
            return ToolResult(
                call.id, call.name, result_text(result, limit, verbatim=limits.verbatim)
            )
        if is_crash(call.name, result):
            return self._crashed(call, heard, error_text(call.name, result, limit))
        if limits.verbatim:
            text = result_text(result, limit, verbatim=True)
            return ToolResult(call.id, call.name, text, is_error=True, verbatim=True)
        return error_result(call, error_text(call.name, result, limit))

    def _crashed(self, call: ToolCall, heard: list[BaseException], text: str) -> ToolResult:
        """A tool raised what it did not mean to: the server's fault, not the policy's (law L2).

        Raises:
            ToolServerError: Unless such crashes are to be answers.
        """
        if heard and isinstance(heard[0], ToolServerError):  # as a simulator's, which is no crash
            raise self._carrier.failure(f"gave no answer to a call of {call.name!r}: {heard[0]}")
        wrong = said_of(heard[0]) if heard else None
        why = f": {wrong or blame(heard[0])}" if heard else ""
        if self._carrier.limits.on_crash == "fault":
            if wrong:
                raise self._carrier.failure(f"crashed in a call of {call.name!r}{why}")
            raise self._carrier.failure(
                f"crashed in a call of {call.name!r}{why}. Let it raise ToolError for what the "
                "policy is to read, or set tools.on_crash to answer"
            )
        self._carrier.crashes.report(call.name, why or self._carrier.last_words())
        return error_result(call, text)

    async def fetch(self, source: StateSpec, what: str) -> str:
        """The text of a resource, or of a tool's result; the tool may be hidden.

        Args:
            source: Which.
            what: The setting that asks for it, `tools.state.graph`.

        Raises:
            ToolServerError: It was refused, or answered with an error; or as with `ask`.
        """
        request: AnyRequest
        answer: type[ReadResourceResult | CallToolResult]
        if source.call is None:
            assert source.resource is not None  # StateSpec holds one of the two
            seconds = self._carrier.limits.call_timeout_s
            read = ReadResourceRequest(params=ReadResourceRequestParams(uri=source.resource))
            request, answer = read, ReadResourceResult
            what = f"a read of {source.resource!r} ({what})"
        else:
            seconds = self._carrier.limits.seconds(source.call)
            request = _request(ToolCall("", source.call, source.arguments))
            answer = CallToolResult
            what = f"a call of {source.call!r} ({what})"
        try:
            found = await self.ask(request, answer, what, [], seconds)
        except MCPError as error:
            raise self._carrier.failure(f"refused {what}: {error.message}") from None
        if isinstance(found, ReadResourceResult):
            return "".join(c.text for c in found.contents if isinstance(c, TextResourceContents))
        if found.is_error:
            said = error_text(source.call or "", found, _SAID_CHARS)
            raise self._carrier.failure(f"answered {what} with an error: {said}")
        return result_text(found, sys.maxsize)

    def failure(self, what: str) -> ToolServerError:
        """The error that says what happened to the server."""
        return self._carrier.failure(what)

    async def ask(
        self,
        request: AnyRequest,
        answer: type[Answer],
        what: str,
        heard: list[BaseException],
        seconds: float,
    ) -> Answer:
        """Send one request and wait for its answer.

        Args:
            request: The request.
            answer: Type of its result.
            what: How messages name the request.
            heard: Takes up what the SDK logs meanwhile.
            seconds: How long the answer may take.

        Raises:
            MCPError: The server answered with a protocol error.
            ToolServerError: The server died, hung or answered with something else.
        """
        try:
            with hearing(heard), self._carrier.inside(), anyio.move_on_after(seconds) as waiting:
                self._carrier.waits(waiting)
                return await self._client.send(request, answer)
        except ValidationError:
            raise self._carrier.failure(
                f"answered {what} with something that is not a {answer.__name__}"
            ) from None
        except MCPError as error:
            if _is_closed(error):
                # A client that is cancelled closes too; then only the cancellation counts.
                await anyio.lowlevel.checkpoint_if_cancelled()
                raise self._carrier.failure(f"died in {what}") from None
            raise
        if anyio.current_time() < waiting.deadline:
            raise self._carrier.failure(f"answered {what} with a message that cannot be read")
        raise self._carrier.failure(
            f"did not answer {what} within {seconds:g} s (tools.call_timeout_s): see what it waits for, "
            "or give it longer"
        )


def _request(call: ToolCall) -> CallToolRequest:
    """The request for a call that a model wrote.

    `Client.call_tool` is not used: it lists the tools once per session and checks the structured
    content against the output schema, which the server has done and the policy never sees.

    Raises:
        ValueError: An argument is no JSON (not a number, half a surrogate pair) or nested too deep.
        RecursionError: Likewise too deep.
    """
    json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode()
    request = CallToolRequest(
        params=CallToolRequestParams(name=call.name, arguments=call.arguments)
    )
    request.model_dump_json()
    return request


def unknown_tool(call: ToolCall, tools: Sequence[ToolSpec]) -> ToolResult:
    """The answer to a call of a tool that is none of `tools`."""
    offered = ", ".join(tool.name for tool in tools) or "none"
    return error_result(call, f"unknown tool {call.name[:_NAME_CHARS]!r}; tools: {offered}")


@asynccontextmanager
async def connected(
    client: McpClient, carrier: Carrier, tools: tuple[ToolSpec, ...] | None = None
) -> AsyncIterator[McpSession]:
    """Connect `client` for the length of the block.

    Args:
        client: Not yet entered.
        carrier: What to know of its server.
        tools: The tools the server offers, where they are known already.

    Raises:
        ToolServerError: The server did not start, or failed on its own.
    """
    seconds = carrier.limits.start_timeout_s
    session: McpSession | None = None
    failure: Exception | None = None
    try:
        # One scope around the whole session, since a scope may not end before the task group that
        # was opened in it. Its deadline is lifted once the server has started.
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as starting:
            heard: list[BaseException] = []
            with hearing(heard), carrier.inside():
                async with client:
                    # No exception leaves the client's task group, which would wrap it in a group.
                    try:
                        if tools is None:
                            tools = await _list_tools(client, carrier)
                        await anyio.lowlevel.checkpoint_if_cancelled()
                        starting.deadline = math.inf
                        session = McpSession(client, tools, carrier)
                        with hearing(None):
                            yield session
                    except Exception as error:  # noqa: BLE001
                        failure = error
    except (Exception, BaseExceptionGroup) as error:
        # Cancelled, a client may fail in other ways as well; then only the cancellation counts.
        await anyio.lowlevel.checkpoint_if_cancelled()
        if not isinstance(error, Exception):
            raise
        if failure is None:
            raise _broken(error, carrier, started=session is not None) from error
    if starting.cancelled_caught:
        raise carrier.failure(f"did not start within {seconds:g} s (tools.start_timeout_s)")
    if failure is not None:
        if session is not None:
            raise failure
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise _broken(failure, carrier, started=False) from failure


def _is_closed(error: MCPError) -> bool:
    """Whether the SDK says so, and no server: its code is one that servers may use as they like."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_CLOSED)


def _broken(error: Exception, carrier: Carrier, *, started: bool) -> ToolServerError:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolServerError):
        return error
    if isinstance(error, MCPError):
        why = "it ended" if _is_closed(error) else error.message
    elif isinstance(error, FileNotFoundError):
        why = f"{error}; is it installed, and on the PATH?"
    elif isinstance(error, (OSError, httpx2.HTTPError)):
        why = str(error)
    else:
        why = blame(error)
    why = why if len(why) <= MAX_CHARS else why[:MAX_CHARS] + "…"
    return carrier.failure(f"{'failed' if started else 'did not start'}: {why}")


async def _list_tools(client: McpClient, carrier: Carrier) -> tuple[ToolSpec, ...]:
    tools: list[ToolSpec] = []
    cursor: str | None = None
    while True:
        try:
            page = await client.list_tools(cursor)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise carrier.failure(
                f"did not start: it lists what is no tool of MCP ({where}: {first['msg']})"
            ) from None
        tools += [
            ToolSpec(tool.name, tool.description or "", tool.input_schema) for tool in page.tools
        ]
        if len(tools) > _MOST_TOOLS:
            raise carrier.failure(f"did not start: it lists more than {_MOST_TOOLS:,} tools")
        cursor = page.next_cursor
        if cursor is None:
            return offered(tools, carrier)


def offered(listed: Iterable[ToolSpec], carrier: Carrier) -> tuple[ToolSpec, ...]:
    """Of the tools a server lists those that the policy sees.

    Raises:
        ToolServerError: Nobody could call one, or the domain speaks of a tool that there is none of.
    """
    tools: dict[str, ToolSpec] = {}
    for tool in listed:
        if not tool.name or not tool.name.isprintable() or " " in tool.name:
            raise carrier.failure(
                f"offers a tool named {tool.name!r}, which nobody can call; a name is of letters, "
                "digits, `_`, `-` and `.`"
            )
        if tool.name in tools:
            raise carrier.failure(f"offers two tools named {tool.name!r}")
        tools[tool.name] = tool
    limits = carrier.limits
    for part, names in (("hidden", sorted(limits.hidden)), ("limits", sorted(limits.tools))):
        for name in names:
            if name not in tools:
                known = did_you_mean(name, tools) or f"; tools: {', '.join(tools) or 'none'}"
                raise carrier.failure(f"has no tool {name!r} (tools.{part}){known}")
    return tuple(tool for name, tool in tools.items() if name not in limits.hidden)
