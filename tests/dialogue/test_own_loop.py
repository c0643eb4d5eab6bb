"""Dialogues led by an agent's own loop: its tokens are exact (L1), its faults are faults (L2)."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
import pytest
from dialogue_kit import (
    Sampler,
    TalkingUser,
    called,
    check_threads,
    dialogue,
    ids_of,
    led,
    says,
    write_notes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domain import Domain
from muarl.errors import PolicyError
from muarl.messages import Message, ToolSpec
from muarl.own_loop import AgentContext, DialogueOver
from muarl.policy import GenerateRequest, Generation
from muarl.record import Outcome, Usage
from muarl.record.codec import decode_episode, encode_episode

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
LEAVE = called('{"name": "leave", "arguments": {}}')
NEITHER = [
    ToolSpec("search", "Of a sub-agent's own.", {"type": "object", "properties": {}}),
]


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


async def plain(context: AgentContext) -> None:
    """What muarl's own loop does, as an agent's own."""
    history = list(context.opening)
    while True:
        message = await context.generate(history)
        history.append(message)
        history.extend([await context.call_tool(call) for call in message.tool_calls])
        if not message.tool_calls:
            history.append(await context.tell_user(message.content))


@pytest.mark.anyio
async def test_the_plain_loop_gives_the_episode_of_muarls_own(domain: Domain) -> None:
    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        said = [PUT, "Shall I note b, too?", "Done."]
        turn = sum(message.role == "assistant" for message in request.history)
        return ids_of(said[turn]), True

    ours = await dialogue(domain, Sampler(draw), TalkingUser(["note it", "no"])).run()
    theirs = await led(domain, plain, Sampler(draw), ["note it", "no"]).run()
    assert ours.reward == 1.0
    assert theirs == ours
    assert encode_episode(theirs) == encode_episode(ours)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_an_agent_sends_its_tokens_are_exact_L1(domain: Domain, seed: int) -> None:
    """It goes on, starts over, trims, edits, forks off sub-agents, asks twice, several at once."""
    rng = random.Random(seed)

    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        return ids_of(
            random.Random(request.seed).choice(["hello", PUT, "<think>so</think>there"])
        ), True

    async def wild(context: AgentContext) -> None:
        known = [list(context.opening)]
        for _ in range(rng.randint(1, 8)):
            history = list(rng.choice(known))
            act = rng.choice(["on", "on", "on", "twice", "trim", "edit", "sub", "both"])
            if act == "trim" and len(history) > 2:
                del history[1 : rng.randint(2, len(history) - 1)]
            if act == "edit":
                history.append(Message("assistant", "I never said that."))
                history.append(Message("user", "Oh."))
            tools = NEITHER if act == "sub" else None
            if act == "both":
                async with anyio.create_task_group() as tasks:
                    for _ in range(2):
                        tasks.start_soon(context.generate, history)
                continue
            message = await context.generate(history, tools=tools)
            if act == "twice":
                message = await context.generate(history, tools=tools)
            history.append(message)
            history.extend([await context.call_tool(call) for call in message.tool_calls])
            if not message.tool_calls:
                history.append(await context.tell_user(message.content))
            known.append(history)

    policy = Sampler(draw)
    episode = anyio.run(led(domain, wild, policy, ["note it"] + ["go on"] * 20, max_turns=40).run)
    assert not episode.outcome.is_fault, episode.error
    check_threads(episode, policy)


@pytest.mark.anyio
async def test_a_conversation_that_goes_on_is_one_sample_and_one_that_was_changed_a_fork(
    domain: Domain,
) -> None:
    async def forking(context: AgentContext) -> None:
        history = list(context.opening)
        first = await context.generate(history)
        answer = await context.tell_user(first.content)
        await context.generate([*history, first, answer])
        await context.generate([*history, first, Message("user", "something else")])
        await context.generate(history, tools=NEITHER)

    episode = await led(domain, forking, says("hello", "there", "you", "user")).run()
    assert episode.outcome is Outcome.LEFT
    assert [turn.sample for turn in episode.turns] == [0, 0, 1, 2]
    assert episode.forks == 2


@pytest.mark.anyio
async def test_reasoning_that_is_not_sent_back_breaks_nothing(domain: Domain) -> None:
    async def forgetful(context: AgentContext) -> None:
        history = list(context.opening)
        first = await context.generate(history)
        assert first.reasoning
        answer = await context.tell_user(first.content)
        await context.generate([*history, Message("assistant", first.content), answer])

    episode = await led(domain, forgetful, says("<think>so</think>hello", "there")).run()
    assert [turn.sample for turn in episode.turns] == [0, 0]


@pytest.mark.anyio
async def test_calls_and_words_of_the_agents_own_are_in_the_record(domain: Domain) -> None:
    async def willful(context: AgentContext) -> None:
        history = list(context.opening)
        message = await context.generate(history)
        await context.call_tool("get", {"key": "old"})
        await context.call_tool(message.tool_calls[0])
        await context.tell_user("I have noted it.")

    episode = await led(domain, willful, says(PUT), ["note it"]).run()
    (turn,) = episode.turns
    assert [call.name for call in turn.calls] == ["get", "put"]
    assert [result.content for result in turn.results] == ["1", "ok"]
    assert turn.said == "I have noted it."
    assert [change.path for change in turn.changes] == ["notes.a"]
    assert turn.per_call == [0, 1]
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    assert decode_episode(encode_episode(episode)) == episode


@pytest.mark.anyio
async def test_what_calls_of_two_messages_change_is_told_of_each_once(domain: Domain) -> None:
    async def going_back(context: AgentContext) -> None:
        first = await context.generate(context.opening)
        await context.call_tool(first.tool_calls[0])
        second = await context.generate([*context.opening, Message("user", "again")])
        await context.call_tool(second.tool_calls[0])
        await context.call_tool(first.tool_calls[1])
        await context.call_tool("get", {"key": "a"})

    def put(*pairs: tuple[str, int]) -> str:
        return called(
            *(
                f'{{"name": "put", "arguments": {{"key": "{key}", "value": {value}}}}}'
                for key, value in pairs
            )
        )

    episode = await led(domain, going_back, says(put(("a", 1), ("a", 3)), put(("b", 2)))).run()
    first, second = episode.turns
    assert [str(change) for change in first.changes] == ["notes.a: added 1", "notes.a: 1 -> 3"]
    assert [str(change) for change in second.changes] == ["notes.b: added 2"]
    assert (first.per_call, second.per_call) == ([1, 1], [1, 0])


@pytest.mark.anyio
async def test_what_calls_made_at_once_change_is_told_once(domain: Domain) -> None:
    async def hasty(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        async with anyio.create_task_group() as tasks:
            for call in message.tool_calls:
                tasks.start_soon(context.call_tool, call)

    puts = [f'{{"name": "put", "arguments": {{"key": "{key}", "value": 1}}}}' for key in "abc"]
    episode = await led(domain, hasty, says(called(*puts))).run()
    (turn,) = episode.turns
    assert sorted(map(str, turn.changes)) == [f"notes.{key}: added 1" for key in "abc"]
    assert sum(turn.per_call) == len(turn.changes)


@pytest.mark.anyio
async def test_notes_are_in_the_record(domain: Domain) -> None:
    async def noting(context: AgentContext) -> None:
        context.note(plan=["a", "b"])
        context.note(used={"sub": 1})

    episode = await led(domain, noting, says()).run()
    assert episode.notes == {"plan": ["a", "b"], "used": {"sub": 1}}


async def swallow(act: Callable[[], Awaitable[Any]]) -> None:
    with suppress(Exception):
        await act()


@pytest.mark.anyio
async def test_a_fault_stays_one_although_the_agent_swallows_it_L2(domain: Domain) -> None:
    class Down:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise PolicyError("the engine is gone")

    async def stoic(context: AgentContext) -> None:
        await swallow(lambda: context.generate(context.opening))
        await swallow(lambda: context.generate(context.opening))

    episode = await led(domain, stoic, Down()).run()
    assert (episode.outcome, episode.fault, episode.reward) == (
        Outcome.INFRA_FAULT,
        "PolicyError",
        None,
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "words"), [(KeyError("x"), "KeyError"), (SystemExit(3), "SystemExit")]
)
async def test_what_an_agent_raises_is_a_fault_with_its_line(
    domain: Domain, error: BaseException, words: str
) -> None:
    async def broken(context: AgentContext) -> None:
        raise error

    episode = await led(domain, broken, says()).run()
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "AgentError")
    assert words in (episode.error or "")
    assert "test_own_loop.py:" in (episode.error or "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda c: c.tell_user("hi"), "before the policy has sampled"),
        (lambda c: c.call_tool("get", {"key": "old"}), "before the policy has sampled"),
    ],
)
async def test_what_an_agent_may_not_do_is_a_fault_that_says_why(
    domain: Domain, act: Callable[[AgentContext], Awaitable[Any]], words: str
) -> None:
    async def wrong(context: AgentContext) -> None:
        await act(context)

    episode = await led(domain, wrong, says()).run()
    assert episode.fault == "AgentError"
    assert words in (episode.error or "")


@pytest.mark.anyio
async def test_a_note_that_is_no_json_is_refused(domain: Domain) -> None:
    async def noting(context: AgentContext) -> None:
        context.note(what=object())

    episode = await led(domain, noting, says()).run()
    assert "a note must be JSON" in (episode.error or "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "limits", "outcome"),
    [
        ((PUT, "Done."), {}, Outcome.COMPLETED),
        ((LEAVE,), {}, Outcome.COMPLETED),
        (("hello",) * 9, {"max_turns": 1}, Outcome.TRUNCATED_TURNS),
        (("hello there user " * 9,), {"max_tokens": 4}, Outcome.TRUNCATED_LENGTH),
        (("hello",), {"context_tokens": 8}, Outcome.TRUNCATED_CONTEXT),
    ],
)
async def test_it_ends_as_muarls_own_loop_does_L4(
    domain: Domain, said: tuple[str, ...], limits: dict[str, int], outcome: Outcome
) -> None:
    texts = ["note it"] if outcome is Outcome.COMPLETED else ["note it", "and then?"]
    theirs = await led(domain, plain, says(*said), texts, **limits).run()
    ours = await dialogue(domain, says(*said), TalkingUser(texts), **limits).run()
    assert theirs.outcome is ours.outcome is outcome
    assert theirs.reward == ours.reward


@pytest.mark.anyio
async def test_after_the_end_nothing_more_happens(domain: Domain) -> None:
    reached = []

    async def stubborn(context: AgentContext) -> None:
        try:
            await plain(context)
        except DialogueOver:
            reached.append("over")
        try:
            await context.call_tool("put", {"key": "b", "value": 2})
        finally:
            reached.append("again")

    episode = await led(domain, stubborn, says(PUT, "Done."), ["note it"]).run()
    assert reached == ["over", "again"]
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)


@pytest.mark.anyio
async def test_the_end_inside_a_task_group_of_the_agents_own_is_the_end(domain: Domain) -> None:
    async def grouped(context: AgentContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(plain, context)

    episode = await led(domain, grouped, says(PUT, "Done."), ["note it"]).run()
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)


@pytest.mark.anyio
async def test_what_a_model_behind_an_endpoint_took_is_in_the_record(domain: Domain) -> None:
    """Its tokens are unknown, so none are learned from, whoever leads the dialogue."""

    class Endpoint:
        policy_version = 0

        def __init__(self) -> None:
            self._says = says("Hello?", "Bye.")

        async def generate(self, request: GenerateRequest) -> Generation:
            made = await self._says.generate(request)
            return msgspec.structs.replace(made, usage=Usage("gpt", 12, 3))

    episode = await led(domain, plain, Endpoint(), ["note it", "yes"]).run()
    assert [turn.usage for turn in episode.turns] == [Usage("gpt", 12, 3)] * 2
    assert [sample.token_ids for sample in episode.samples] == [[]]
    assert episode.forks == 0
    assert decode_episode(encode_episode(episode)) == episode
