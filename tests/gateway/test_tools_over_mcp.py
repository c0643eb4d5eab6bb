"""The domain's tools of one dialogue, over MCP, with the SDK's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import httpx2
import pytest
from dialogue_kit import called, led, says
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from slow_notes import Held, slow_notes_in

from muarl.domain import Domain
from muarl.gateway.server import Endpoint
from muarl.messages import ToolCall
from muarl.own_loop import AgentContext
from muarl.record import Episode, Outcome

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
THREE = called(
    '{"name": "put", "arguments": {"key": "a", "value": 2}}',
    '{"name": "get", "arguments": {"key": "a"}}',
    '{"name": "put", "arguments": {"key": "a", "value": 1}}',
)


@asynccontextmanager
async def tools(endpoint: Endpoint, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=endpoint.headers) as http,
        Client(streamable_http_client(endpoint.mcp_url, http_client=http), **options) as client,
    ):
        yield client


async def run(notes: Domain, agent: Any, *said: str, **limits: Any) -> Episode:
    with anyio.fail_after(60):
        return await led(notes, agent, says(*said), ["note it"], **limits).run()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_and_calls_the_tools_of_this_dialogue(
    notes: Domain, mode: str
) -> None:
    seen: list[Any] = []

    async def agent(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        async with tools(await context.endpoint(), mode=mode) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [tool.name for tool in context.tools]
            assert [tool.input_schema for tool in listed.tools] == [
                tool.parameters for tool in context.tools
            ]
            (call,) = message.tool_calls
            for name, arguments in (("get", {"key": "nothing"}), (call.name, call.arguments)):
                result = await client.call_tool(name, arguments)
                seen.append((result.is_error, result.content[0].text))

    episode = await run(notes, agent, PUT)
    assert not episode.outcome.is_fault, episode.error
    assert seen == [(True, "no note nothing"), (False, "ok")]
    (turn,) = episode.turns
    assert [call.name for call in turn.calls] == ["get", "put"]
    assert [change.path for change in turn.changes] == ["notes.a"]
    assert episode.reward == 1.0


async def test_true_is_not_taken_for_the_policys_one(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        await context.generate(context.opening)
        async with tools(await context.endpoint()) as client:
            await client.call_tool("put", {"key": "a", "value": True})

    episode = await run(notes, agent, PUT)
    (turn,) = episode.turns
    (call,) = turn.calls
    assert (call.id, call.arguments["value"]) == ("own_0_1", True)
    assert call.arguments["value"] is True


async def test_calls_made_at_once_run_in_the_order_of_the_message(notes: Domain) -> None:
    """As frameworks do, each in a task of its own: the episode is as if they came one by one."""

    async def agent(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        async with tools(await context.endpoint()) as client, anyio.create_task_group() as tasks:
            for call in reversed(message.tool_calls):
                tasks.start_soon(client.call_tool, call.name, call.arguments)

    episode = await run(notes, agent, THREE)
    (turn,) = episode.turns
    assert [result.content for result in turn.results] == ["ok", "2", "ok"]
    assert [result.call_id for result in turn.results] == ["call_0_0", "call_0_1", "call_0_2"]
    assert (turn.made, episode.reward) == (None, 1.0)


@pytest.fixture
def slow_notes(tmp_path: Path) -> Domain:
    return slow_notes_in(tmp_path)


async def hangs_up(context: AgentContext, call: ToolCall) -> None:
    """Call a tool, and do not wait for the answer once it has begun."""

    async def wait_for_it() -> None:
        async with tools(await context.endpoint()) as client:
            await client.call_tool(call.name, call.arguments)

    Held.begun, Held.go_on = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_it)
        await Held.begun.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("asks_again", [True, False])
async def test_a_call_that_its_client_hung_up_on_is_made_and_recorded(
    slow_notes: Domain, asks_again: bool
) -> None:
    """It has changed the world: without it no record could be replayed."""

    async def agent(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await hangs_up(context, call)
        Held.go_on.set()
        if asks_again:
            async with tools(await context.endpoint()) as client:
                result = await client.call_tool("get", {"key": "a"})
                assert result.content[0].text == "1"

    episode = await run(slow_notes, agent, PUT)
    assert not episode.outcome.is_fault, episode.error
    (turn,) = episode.turns
    assert turn.calls[0].id == "call_0_0"
    assert [call.name for call in turn.calls] == ["put", "get"][: 1 + asks_again]
    assert [change.path for change in turn.changes] == ["notes.a"]
    assert episode.reward == 1.0


async def test_a_dialogue_that_is_cut_off_waits_for_no_tool(slow_notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await hangs_up(context, call)
        cut.cancel()

    with anyio.fail_after(60), anyio.CancelScope() as cut:
        await led(slow_notes, agent, says(PUT), ["note it"]).run()
    assert cut.cancelled_caught


async def test_a_call_that_a_framework_leaves_out_is_not_waited_for_for_ever(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        async with tools(await context.endpoint()) as client:
            await client.call_tool(message.tool_calls[2].name, message.tool_calls[2].arguments)

    episode = await run(notes, agent, THREE)
    (turn,) = episode.turns
    assert [call.id for call in turn.calls] == ["call_0_2"]
    assert episode.reward == 1.0


async def test_a_terminal_tool_ends_the_dialogue_over_mcp_too(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        await context.generate(context.opening)
        async with tools(await context.endpoint()) as client:
            while True:
                await client.call_tool("leave", {})

    leave = called('{"name": "leave", "arguments": {}}')
    episode = await run(notes, agent, leave)
    assert (episode.outcome, episode.fault) == (Outcome.COMPLETED, None)
    assert [result.name for result in episode.turns[0].results] == ["leave"]


async def test_a_call_before_anything_was_sampled_is_a_fault_that_says_so(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        async with tools(await context.endpoint()) as client:
            await client.call_tool("get", {"key": "old"})

    episode = await run(notes, agent)
    assert episode.fault == "AgentError"
    assert "before the policy has sampled" in (episode.error or "")


async def test_arguments_that_are_no_json_here_are_the_calls_own_error(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        await context.generate(context.opening)
        async with tools(await context.endpoint()) as client:
            result = await client.call_tool("put", {"key": "a", "value": 2**70})
            assert result.is_error

    episode = await run(notes, agent, "hello")
    assert not episode.outcome.is_fault, episode.error


async def test_nobody_gets_at_the_tools_without_the_key(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        async with aiohttp.ClientSession() as session:
            async with session.post(endpoint.mcp_url, data=b"{}") as response:
                assert response.status == 401
            async with session.get(endpoint.mcp_url, headers=endpoint.headers) as response:
                assert response.status == 405
            other = {**endpoint.headers, "Host": "elsewhere.example"}
            async with session.post(endpoint.mcp_url, data=b"{}", headers=other) as response:
                assert response.status in (400, 403, 421)
        wrong = Endpoint(endpoint.url, endpoint.mcp_url, "wrong")
        with pytest.raises((MCPError, httpx2.HTTPError, BaseExceptionGroup)):
            async with tools(wrong) as client:
                await client.list_tools()

    episode = await run(notes, agent)
    assert not episode.outcome.is_fault, episode.error
