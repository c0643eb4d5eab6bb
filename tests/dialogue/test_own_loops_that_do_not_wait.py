"""Agents that give up on what they asked for: what it does is done, and is in the record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import TalkingUser, called, led, says
from slow_notes import Held, slow_notes_in

from muarl.domain import Domain
from muarl.errors import ToolServerError
from muarl.own_loop import AgentContext, DialogueOver
from muarl.record import Episode, Outcome, Turn, UserReply
from muarl.user import User

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')


@pytest.fixture
def slow_notes(tmp_path: Path) -> Domain:
    return slow_notes_in(tmp_path)


async def in_a_scope(work: Callable[[], Awaitable[Any]]) -> None:
    """Give up as `anyio.move_on_after` does."""
    async with anyio.create_task_group() as tasks:

        async def wait_for_it() -> None:
            with anyio.CancelScope() as scope:
                tasks.start_soon(give_up, scope)
                await work()

        async def give_up(scope: anyio.CancelScope) -> None:
            await Held.begun.wait()
            scope.cancel()

        tasks.start_soon(wait_for_it)


async def in_a_task(work: Callable[[], Awaitable[Any]]) -> None:
    """Give up as `asyncio.wait_for` does."""
    task = asyncio.ensure_future(work())
    await Held.begun.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class SlowUser(TalkingUser):
    """Hears what she is told, and takes her time."""

    async def reply(self, agent_text: str) -> UserReply:
        Held.begun.set()
        await Held.go_on.wait()
        return await super().reply(agent_text)


@pytest.fixture(autouse=True)
def held() -> None:
    Held.begun, Held.go_on = anyio.Event(), anyio.Event()


async def run(notes: Domain, agent: Any, *said: str, user: User | None = None) -> Episode:
    dialogue = led(notes, agent, says(*said), ["note it"])
    if user is not None:
        dialogue._user = user
    with anyio.fail_after(60):
        return await dialogue.run()


gives_up = pytest.mark.parametrize(
    ("anyio_backend", "give_up_on"),
    [("asyncio", in_a_scope), ("trio", in_a_scope), ("asyncio", in_a_task)],
)


@pytest.mark.parametrize("asks_again", [True, False])
@gives_up
async def test_a_call_that_the_agent_gave_up_on_is_made_and_recorded(
    slow_notes: Domain, give_up_on: Any, asks_again: bool
) -> None:
    """It has changed the world: without it no record could be replayed."""

    async def agent(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await give_up_on(lambda: context.call_tool(call))
        Held.go_on.set()
        if asks_again:
            assert (await context.call_tool("get", {"key": "a"})).content == "1"

    episode = await run(slow_notes, agent, PUT)
    assert not episode.outcome.is_fault, episode.error
    (turn,) = episode.turns
    assert turn.calls[0].id == "call_0_0"
    assert [call.name for call in turn.calls] == ["put", "get"][: 1 + asks_again]
    assert [result.content for result in turn.results] == ["ok", "1"][: 1 + asks_again]
    assert [change.path for change in turn.changes] == ["notes.a"]
    assert episode.reward == 1.0


@gives_up
async def test_what_fails_after_the_agent_gave_up_on_it_is_a_fault(
    slow_notes: Domain, give_up_on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fault becomes a reward because nobody looked."""

    async def agent(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await give_up_on(lambda: context.call_tool(call))
        Held.go_on.set()

    def broken(*_: object) -> None:
        raise ToolServerError("gone")

    monkeypatch.setattr(Turn, "answered", broken)
    episode = await run(slow_notes, agent, PUT)
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "ToolServerError")


@gives_up
async def test_what_the_user_answers_after_the_agent_gave_up_on_her_is_recorded(
    slow_notes: Domain, give_up_on: Any
) -> None:
    """She has heard it, and may have acted on it."""
    user = SlowUser(["note it", "yes", "no"])

    async def agent(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        await give_up_on(lambda: context.tell_user(message.content))
        Held.go_on.set()
        message = await context.generate(context.opening)
        assert (await context.tell_user(message.content)).content == "no"

    episode = await run(slow_notes, agent, "hello", "there", user=user)
    assert not episode.outcome.is_fault, episode.error
    assert [turn.reply and turn.reply.text for turn in episode.turns] == ["yes", "no"]
    assert user.heard == ["hello", "there"]


async def test_a_dialogue_that_is_cut_off_waits_for_no_call_that_its_agent_shields(
    slow_notes: Domain,
) -> None:
    met: list[str] = []

    async def agent(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        with anyio.CancelScope(shield=True):
            try:
                await context.call_tool(call)
            except DialogueOver as over:
                met.append(over.outcome.value)

    with anyio.CancelScope() as cut:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, slow_notes, agent, PUT)
            await Held.begun.wait()
            cut.cancel()
    assert cut.cancelled_caught
    assert met == ["left"]
