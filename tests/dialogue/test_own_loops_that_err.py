"""Agents' own loops that do what they should not: nothing freezes, and records say what happened."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
import pytest
from dialogue_kit import called, led, says, write_notes

from muarl.domain import Domain
from muarl.errors import PolicyError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.own_loop import AgentContext, DialogueOver
from muarl.policy import GenerateRequest, Generation
from muarl.record import Outcome
from muarl.record.codec import decode_episode, encode_episode

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


class Down:
    policy_version = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        raise PolicyError("the engine is gone")


async def test_an_agent_that_tries_a_fault_again_for_ever_is_ended(domain: Domain) -> None:
    """Most retry loops catch every `Exception`: the others' dialogues must go on meanwhile."""
    others = 0

    async def stubborn(context: AgentContext) -> None:
        for _ in range(1_000_000):
            with suppress(Exception):
                await context.generate(context.opening)

    async def live() -> None:
        nonlocal others
        while True:
            await anyio.sleep(0.01)
            others += 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live)
            episode = await led(domain, stubborn, Down()).run()
            tasks.cancel_scope.cancel()
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "PolicyError")
    assert others > 3


async def test_an_agent_that_talks_on_after_the_end_is_ended(domain: Domain) -> None:
    async def deaf(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        while True:
            try:
                await context.tell_user(message.content)
                await context.generate(context.opening)
            except DialogueOver:
                continue

    with anyio.fail_after(60):
        episode = await led(domain, deaf, says("hello", "hello"), ["note it"]).run()
    assert (episode.outcome, episode.fault) == (Outcome.COMPLETED, None)


async def test_tasks_that_an_agent_leaves_behind_do_nothing_more(domain: Domain) -> None:
    """Nothing is sampled, called or said once it has returned: the episode is being scored then."""
    met: list[str] = []

    async with anyio.create_task_group() as tasks:

        async def act(what: Callable[[], Awaitable[Any]]) -> None:
            try:
                await what()
            except DialogueOver as over:
                met.append(over.outcome.value)

        async def leaving(context: AgentContext) -> None:
            await context.generate(context.opening)
            tasks.start_soon(act, lambda: context.generate(context.opening))
            tasks.start_soon(act, lambda: context.call_tool("put", {"key": "b", "value": 2}))
            tasks.start_soon(act, lambda: context.tell_user("and"))

        episode = await led(domain, leaving, says(*["hello"] * 3)).run()
    assert met == ["left"] * 3
    assert (len(episode.turns), len(episode.samples), episode.changes) == (1, 1, [])


async def test_what_was_under_way_when_the_agent_returned_is_over(domain: Domain) -> None:
    asked, answer = anyio.Event(), anyio.Event()
    scripted = says("hello")
    met: list[str] = []

    class Slow:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            asked.set()
            await answer.wait()
            return await scripted.generate(request)

    async with anyio.create_task_group() as tasks:

        async def later(context: AgentContext) -> None:
            try:
                await context.generate(context.opening)
            except DialogueOver as over:
                met.append(over.outcome.value)

        async def leaving(context: AgentContext) -> None:
            tasks.start_soon(later, context)
            await asked.wait()

        episode = await led(domain, leaving, Slow()).run()
        answer.set()
    assert met == ["left"]
    assert (episode.turns, episode.samples, episode.forks) == ([], [], 0)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda c, m: c.tell_user(m),
            "tell_user: what is said must be text, got a value of type Message",
        ),
        (lambda c, _: c.tell_user(None), "tell_user: what is said must be text, got None"),
        (lambda c, _: c.tell_user("\ud800"), "half a surrogate pair"),
        (lambda c, _: c.call_tool(None), "if it is no ToolCall, must be text, got None"),
        (
            lambda c, _: c.call_tool("put", '{"key": "a"}'),
            "the arguments of 'put' must be a mapping, got a value of type str",
        ),
        (lambda c, _: c.call_tool("put\ud800", {}), "half a surrogate pair"),
        (
            lambda c, _: c.generate("hello"),
            "messages[0] must be a muarl Message, got a value of type str",
        ),
        (
            lambda c, _: c.generate([{"role": "user"}]),
            "messages[0] must be a muarl Message, got a value of type dict",
        ),
        (lambda c, _: c.generate([]), "expected at least one message"),
        (lambda c, _: c.generate(c.opening, tools=[{}]), "tools[0] must be a muarl ToolSpec"),
        (lambda c, _: c.generate(c.opening, max_tokens=0), "max_tokens: expected at least 1"),
        (lambda c, _: c.generate(c.opening, max_tokens="9"), "max_tokens is a number of tokens"),
    ],
)
async def test_what_has_another_form_is_a_fault_that_says_which(
    domain: Domain, act: Callable[[Any, Message], Awaitable[Any]], words: str
) -> None:
    async def wrong(context: AgentContext) -> None:
        await act(context, await context.generate(context.opening))

    episode = await led(domain, wrong, says("hello", "hello")).run()
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "AgentError")
    assert words in (episode.error or "")
    assert "test_own_loops_that_err.py:" in (episode.error or "")
    assert decode_episode(encode_episode(episode)) == episode


async def test_a_loop_that_is_no_async_function_is_told_so(domain: Domain) -> None:
    episode = await led(domain, lambda context: None, says("hello")).run()  # type: ignore[arg-type,return-value]
    assert episode.fault == "AgentError"
    assert "expected an async function of a context; it gave None" in (episode.error or "")


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": "a", "value": math.nan},
        {"key": "\ud800", "value": 1},
        {"key": "a", "value": 2**80},
        {1: "a"},
        {"key": "a", "value": object()},
    ],
)
async def test_arguments_that_are_no_json_are_the_calls_own_error(
    domain: Domain, arguments: dict[Any, Any]
) -> None:
    """As over MCP: an agent may have read them in what the policy wrote."""
    answers: list[Message] = []

    async def wrong(context: AgentContext) -> None:
        await context.generate(context.opening)
        answers.append(await context.call_tool("put", arguments))

    episode = await led(domain, wrong, says("hello")).run()
    assert not episode.outcome.is_fault, episode.error
    assert answers[0].content.startswith("Error: wrong arguments: ")
    assert decode_episode(encode_episode(episode)) == episode


async def test_a_call_that_the_agent_mended_is_recorded_as_it_was_made(domain: Domain) -> None:
    async def mending(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await context.call_tool(msgspec.structs.replace(call, arguments={"key": "b", "value": 2}))

    episode = await led(domain, mending, says(PUT)).run()
    (turn,) = episode.turns
    assert list(turn.calls) == [ToolCall("call_0_0", "put", {"key": "b", "value": 2})]
    assert [str(change) for change in episode.changes] == ["notes.b: added 2"]


async def test_true_in_the_place_of_the_policys_one_is_recorded_as_it_was_called(
    domain: Domain,
) -> None:
    async def mending(context: AgentContext) -> None:
        (call,) = (await context.generate(context.opening)).tool_calls
        await context.call_tool(
            msgspec.structs.replace(call, arguments={"key": "a", "value": True})
        )

    episode = await led(domain, mending, says(PUT)).run()
    (turn,) = episode.turns
    assert [call.arguments["value"] for call in turn.calls] == [True]
    assert turn.calls[0].arguments["value"] is True


@pytest.mark.parametrize("asked_again", [False, True])
async def test_messages_under_way_are_had_when_one_more_is_asked_for_than_there_are_turns(
    domain: Domain, asked_again: bool
) -> None:
    """Of three at once and two turns; or of two, of which one is given up on, and then one more."""
    waiting, go_on = anyio.Event(), anyio.Event()
    held: list[GenerateRequest] = []
    said = says(*["hello"] * 4)

    class Slow:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            held.append(request)
            if len(held) == 2:
                waiting.set()
            await go_on.wait()
            return await said.generate(request)

    async def hasty(context: AgentContext) -> None:
        async with anyio.create_task_group() as tasks:
            given_up = anyio.CancelScope()

            async def ask(scope: anyio.CancelScope) -> None:
                with scope:
                    await context.generate(context.opening)

            tasks.start_soon(ask, anyio.CancelScope())
            tasks.start_soon(ask, given_up)
            await waiting.wait()
            tasks.start_soon(ask, anyio.CancelScope())
            await anyio.wait_all_tasks_blocked()
            if asked_again:
                given_up.cancel()
            await anyio.wait_all_tasks_blocked()
            go_on.set()

    with anyio.fail_after(60):
        episode = await led(domain, hasty, Slow(), max_turns=2).run()
    assert not episode.outcome.is_fault, episode.error
    assert len(episode.turns) == 2
    assert len(held) == 2 + asked_again
    assert episode.outcome is (Outcome.LEFT if asked_again else Outcome.TRUNCATED_TURNS)


async def test_calls_of_its_own_at_once_have_ids_of_their_own(domain: Domain) -> None:
    async def hasty(context: AgentContext) -> None:
        await context.generate(context.opening)
        async with anyio.create_task_group() as tasks:
            for key in "abc":
                tasks.start_soon(context.call_tool, "put", {"key": key, "value": 1})

    episode = await led(domain, hasty, says("hello")).run()
    (turn,) = episode.turns
    assert sorted(call.id for call in turn.calls) == ["own_0_0", "own_0_1", "own_0_2"]
    assert [call.id for call in turn.calls] == [result.call_id for result in turn.results]


async def test_the_user_is_not_told_two_things_at_once(domain: Domain) -> None:
    async def hasty(context: AgentContext) -> None:
        await context.generate(context.opening)
        async with anyio.create_task_group() as tasks:
            for text in ("one", "two"):
                tasks.start_soon(context.tell_user, text)

    episode = await led(domain, hasty, says("hello")).run()
    assert episode.fault == "AgentError"
    assert "twice without sampling in between" in (episode.error or "")


async def test_a_conversation_that_could_not_be_asked_on_is_no_fork(domain: Domain) -> None:
    unreadable = [ToolSpec("look", "", {"type": object()})]

    async def careless(context: AgentContext) -> None:
        with pytest.raises(TypeError):
            await context.generate(context.opening, tools=unreadable)
        first = await context.generate(context.opening)
        await context.generate([*context.opening, first, Message("user", "and")])

    episode = await led(domain, careless, says("hello", "there")).run()
    assert not episode.outcome.is_fault, episode.error
    assert [turn.sample for turn in episode.turns] == [0, 0]
    assert (episode.forks, len(episode.samples)) == (0, 1)


async def test_what_an_agent_changes_of_its_task_is_its_own_alone(domain: Domain) -> None:
    dialogue = led(domain, lambda context: spoils(context), says("hello"))
    before = dialogue._task.model_dump()
    await dialogue.run()
    assert dialogue._task.model_dump() == before


async def spoils(context: AgentContext) -> None:
    context.task.gold.clear()
    context.task.world["notes"] = {}
