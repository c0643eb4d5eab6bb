"""Laws L2 and L4: every dialogue ends in one outcome, for one of the reasons there are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dialogue_kit import (
    Sampler,
    TalkingUser,
    called,
    dialogue,
    ids_of,
    note_task,
    renderer,
    write_notes,
)

from muarl import errors
from muarl.domain import Domain
from muarl.errors import EpisodeError, ToolServerError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, Outcome, UserReply
from muarl.record.codec import decode_episode, encode_episode
from muarl.reward import verdict
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.testing import Say, ScriptedPolicy, ScriptedUserStub
from muarl.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


def says(*texts: str | Say) -> ScriptedPolicy:
    return ScriptedPolicy(texts, encode=ids_of)


PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')


def check_fault(episode: Episode, outcome: Outcome, why: str) -> None:
    assert episode.outcome == outcome
    assert episode.outcome.is_fault
    assert why in (episode.error or "")
    kind = getattr(errors, episode.fault or "")
    assert issubclass(kind, errors.UserError if outcome is Outcome.USER_FAULT else EpisodeError)
    assert episode.reward is None
    assert episode.rewards == []
    assert episode.metrics == []


# --- faults of the surroundings (L2) --------------------------------------------------------------


async def test_a_user_who_breaks_her_contract_is_a_user_fault_L2(domain: Domain) -> None:
    episode = await dialogue(domain, says(PUT, "Done."), ScriptedUserStub(["hi"])).run()
    check_fault(episode, Outcome.USER_FAULT, "one more was asked")
    assert [tool.name for tool in episode.tools] == ["put", "get", "echo", "leave"]
    assert len(episode.turns) == 2, "what was said until then is on record"
    assert [change.path for change in episode.changes] == ["notes.a"]


async def test_a_user_who_cannot_even_open_is_a_user_fault_L2(domain: Domain) -> None:
    episode = await dialogue(domain, says("hello"), ScriptedUserStub([])).run()
    check_fault(episode, Outcome.USER_FAULT, "one more was asked")


async def test_a_policy_that_fails_is_an_infrastructure_fault_L2(domain: Domain) -> None:
    episode = await dialogue(domain, says(), TalkingUser(["hi"])).run()
    check_fault(episode, Outcome.INFRA_FAULT, "the script has 0 messages")


class Fixed:
    """Answers everything with one generation."""

    policy_version = 0

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    async def generate(self, request: GenerateRequest) -> Generation:
        return self._generation


STOP = renderer().stop_token_ids[0]


@pytest.mark.parametrize(
    ("generation", "why"),
    [
        (Generation([], [], "stop", 0), "0 tokens"),
        (Generation([5, STOP], [-0.1], "stop", 0), "2 tokens with 1 log-probs"),
        (Generation([5, STOP], [-0.1, float("nan")], "stop", 0), "not finite"),
        (Generation([5, STOP], [float("-inf"), -0.1], "stop", 0), "not finite"),
        (Generation([5] * 500, [-0.1] * 500, "length", 0), "asked for 400"),
        (Generation([5] * 9, [-0.1] * 9, "length", 0), "'length' after 9 tokens; asked for 400"),
        (Generation([5, STOP, 5, STOP], [-0.1] * 4, "stop", 0), "after a stop token"),
    ],
)
async def test_what_an_engine_must_not_return_is_a_fault_L2(
    domain: Domain, generation: Generation, why: str
) -> None:
    episode = await dialogue(domain, Fixed(generation), TalkingUser(["hi"])).run()
    check_fault(episode, Outcome.INFRA_FAULT, why)
    assert episode.turns == []
    assert not any(sample.num_sampled for sample in episode.samples)


class DyingSession:
    """A session whose server dies in a call."""

    tools = (ToolSpec("put", "", {"type": "object", "properties": {}}),)

    async def call(self, call: ToolCall) -> ToolResult:
        raise ToolServerError(f"the server died in a call of {call.name!r}")


class DyingServer:
    """Dies in a call, or before it serves, or at the end."""

    def __init__(self, when: str) -> None:
        self._when = when

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[DyingSession]:
        if self._when == "start":
            raise ToolServerError("the server did not start")
        yield DyingSession()
        if self._when == "end":
            raise ToolServerError("the server has no final world")


@pytest.mark.parametrize(
    ("when", "why"), [("start", "did not start"), ("call", "died in"), ("end", "no final world")]
)
async def test_a_tool_server_that_dies_is_an_infrastructure_fault_L2(
    domain: Domain, monkeypatch: pytest.MonkeyPatch, when: str, why: str
) -> None:
    monkeypatch.setattr(domain, "server", DyingServer(when))
    text = PUT if when == "call" else "hello"
    episode = await dialogue(domain, says(text), TalkingUser(["hi"])).run()
    check_fault(episode, Outcome.INFRA_FAULT, why)
    assert bool(episode.tools) == (when != "start")


async def test_a_predicate_that_raises_is_an_infrastructure_fault_L2(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(verdict._CHECKS, "said", broken)
    task = note_task(reward=[PredicateSpec(said={"text": "x"})])  # type: ignore[arg-type]
    episode = await dialogue(domain, says(PUT, "Done."), TalkingUser(["hi"]), task=task).run()
    check_fault(episode, Outcome.INFRA_FAULT, "predicate \"said 'x'\" could not be evaluated")


async def test_gold_calls_that_fail_are_an_infrastructure_fault_L2(domain: Domain) -> None:
    task = note_task(id="bad-gold", gold=[GoldCallSpec(tool="get", arguments={"key": "nothing"})])
    episode = await dialogue(domain, says("Done."), TalkingUser(["hi"]), task=task).run()
    check_fault(episode, Outcome.INFRA_FAULT, "gold call 0 of task 'bad-gold'")


async def test_a_connection_that_fails_under_a_policy_is_a_fault_of_its_dialogue(
    domain: Domain,
) -> None:
    class Afar:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise ConnectionResetError("gone")

    episode = await dialogue(domain, Afar(), TalkingUser(["hi"])).run()
    check_fault(episode, Outcome.INFRA_FAULT, "the policy raised ConnectionResetError: gone")


async def test_a_bug_is_no_outcome(domain: Domain) -> None:
    """What no contract foresees is not taken for a fault of the engine, and retried: it is loud."""

    class Buggy:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        await dialogue(domain, Buggy(), TalkingUser(["hi"])).run()


# --- what the policy does wrong is its own to mend (L2) -------------------------------------------


def deep(levels: int) -> str:
    return (
        '{"name": "put", "arguments": {"key": "a", "value": ' + "[" * levels + "]" * levels + "}}"
    )


def put(value: str) -> str:
    return f'{{"name": "put", "arguments": {{"key": "a", "value": {value}}}}}'


BAD_CALLS = {
    "malformed JSON": ('{"name": "put", "arguments": ', "not valid JSON"),
    "nothing": ("", "not valid JSON"),
    "no object": ("[1, 2]", "names no tool"),
    "no name": ('{"arguments": {}}', "names no tool"),
    "a name that is no text": ('{"name": ["put"], "arguments": {}}', "names no tool"),
    "a name with half a surrogate pair": ('{"name": "\\ud800", "arguments": {}}', "names no tool"),
    "an unknown tool": ('{"name": "burn", "arguments": {}}', "unknown tool 'burn'"),
    "arguments that are a list": ('{"name": "put", "arguments": [1]}', "must be a JSON object"),
    "arguments that are text": ('{"name": "put", "arguments": "{}"}', "must be a JSON object"),
    "arguments that lack one": ('{"name": "put", "arguments": {}}', "wrong arguments"),
    "arguments of a wrong type": ('{"name": "get", "arguments": {"key": [1]}}', "wrong arguments"),
    "NaN": (put("NaN"), "no number"),
    "Infinity": (put("[-Infinity]"), "no number"),
    "a float that overflows": (put("1e999"), "no number"),
    "an integer beyond 64 bits": (put("9" * 30), "beyond 64 bits"),
    "an integer of thousands of digits": (put("9" * 5_000), "too long"),
    "half a surrogate pair": (put('"\\ud800"'), "half a surrogate pair"),
    "a key with half a surrogate pair": (put('{"\\udfff": 1}'), "half a surrogate pair"),
    "JSON nested 150 deep": (deep(150), "nested deeper"),
    "JSON nested 100,000 deep": (deep(100_000), "brackets"),
}


@pytest.mark.parametrize(("block", "why"), BAD_CALLS.values(), ids=BAD_CALLS.keys())
async def test_a_bad_call_is_a_tool_error_and_the_dialogue_goes_on_L2(
    domain: Domain, block: str, why: str
) -> None:
    user = TalkingUser(["hi"])
    policy = says(called(block), PUT, "Done.")
    limits = {"max_tokens": 300_000, "context_tokens": 900_000}
    episode = await dialogue(domain, policy, user, **limits).run()
    assert episode.outcome == Outcome.COMPLETED
    (result,) = episode.turns[0].results
    assert result.is_error
    assert why in result.content
    assert episode.turns[0].changes == []
    assert user.heard == ["Done."]
    assert episode.reward == 1.0, "the policy mended it"
    assert decode_episode(encode_episode(episode)) == episode, "memory and journal disagree"
    read = policy.requests[1].history[-1]
    assert (read.role, read.content) == ("tool", f"Error: {result.content}")


async def test_all_calls_of_a_message_run_in_order_and_a_bad_one_stops_no_other(
    domain: Domain,
) -> None:
    blocks = [put("1"), "not json", put("[2.0]"), '{"name": "get", "arguments": {"key": "a"}}']
    episode = await dialogue(domain, says(called(*blocks), "Done."), TalkingUser(["hi"])).run()
    results = episode.turns[0].results
    assert [r.is_error for r in results] == [False, True, False, False]
    assert results[3].content == "[2.0]"
    assert [str(change) for change in episode.turns[0].changes] == [
        "notes.a: added 1",
        "notes.a: 1 -> [2.0]",
    ]
    assert episode.turns[0].per_call == [1, 0, 1, 0]
    assert [r.call_id for r in results] == [c.id for c in episode.turns[0].message.tool_calls]


# --- who ends a dialogue (L4) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["###STOP###", "bye", "###TRANSFER###", "<|im_end|>", "<|endoftext|>", ""]
)
async def test_no_word_of_the_policy_ends_a_dialogue_L4(domain: Domain, text: str) -> None:
    user = TalkingUser(["hi", "still here"])
    episode = await dialogue(domain, says(text, text, text), user).run()
    assert [turn.reply.stop for turn in episode.turns if turn.reply] == [False, True]
    assert episode.outcome == Outcome.COMPLETED


async def test_the_users_own_stop_marker_is_only_text_without_a_stop_L4(domain: Domain) -> None:
    user = TalkingUser(["###STOP###", "###STOP### <|im_end|>"])
    episode = await dialogue(domain, says("a", "b", "c"), user).run()
    assert len(episode.turns) == 2


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("<think>###STOP### secret</think>Hello.", "Hello."),
        ("<think>secret", ""),
        ("secret</think>Hello.", "Hello."),
        ("secret</think>secret too</think>Hello.", "Hello."),
        ("Hello. <think>secret</think>", ""),
        ("Hello. <think>secret", "Hello."),
        ("<think>secret</think><think>secret</think>Hello.", "Hello."),
    ],
)
async def test_reasoning_never_reaches_the_user_L4(domain: Domain, text: str, heard: str) -> None:
    user = TalkingUser(["hi"])
    episode = await dialogue(domain, says(text), user).run()
    assert user.heard == [heard]
    assert "secret" in episode.turns[0].message.reasoning


async def test_calls_within_reasoning_are_not_run_L4(domain: Domain) -> None:
    user = TalkingUser(["hi"])
    episode = await dialogue(domain, says(f"<think>{PUT}</think>Hello."), user).run()
    assert user.heard == ["Hello."]
    assert episode.changes == []


async def test_a_terminal_tool_ends_a_dialogue_after_all_calls_of_its_message_L4(
    domain: Domain,
) -> None:
    message = called('{"name": "leave", "arguments": {}}', put("1"))
    episode = await dialogue(domain, says(message), TalkingUser(["hi"])).run()
    assert episode.outcome == Outcome.COMPLETED
    assert len(episode.turns[0].results) == 2
    assert episode.reward == 1.0


async def test_a_terminal_tool_called_wrongly_ends_nothing_L4(domain: Domain) -> None:
    message = called('{"name": "leave", "arguments": [1]}')
    episode = await dialogue(domain, says(message, "Hello."), TalkingUser(["hi"])).run()
    assert len(episode.turns) == 2


@pytest.mark.parametrize(("act", "outcome"), [("abandon", "abandoned"), ("stop", "completed")])
async def test_a_user_who_leaves_ends_a_dialogue_L4(domain: Domain, act: str, outcome: str) -> None:
    user = ScriptedUserStub(["hi", UserReply("bye", stop=True, act=act)])
    episode = await dialogue(domain, says("Hello."), user).run()
    assert episode.outcome == outcome
    assert episode.reward == 0.0


async def test_a_user_who_leaves_at_once_is_heard_by_nobody_L4(domain: Domain) -> None:
    user = ScriptedUserStub([UserReply("wrong number", stop=True)])
    policy = says("Hello.")
    episode = await dialogue(domain, policy, user).run()
    assert (episode.outcome, episode.turns) == (Outcome.ABANDONED, [])
    assert policy.requests == []


async def test_text_beside_calls_is_not_said_to_the_user(domain: Domain) -> None:
    user = TalkingUser(["hi"])
    await dialogue(domain, says(f"Aside. {PUT}", "Done."), user).run()
    assert user.heard == ["Done."]


Limits = dict[str, int]


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"max_turns": 2}, Outcome.TRUNCATED_TURNS),
        ({"max_tokens": 3}, Outcome.TRUNCATED_LENGTH),
        ({"context_tokens": 3}, Outcome.TRUNCATED_CONTEXT),
    ],
)
async def test_a_cap_ends_a_dialogue_and_it_is_scored_by_what_it_reached_L4(
    domain: Domain, limits: Limits, outcome: Outcome
) -> None:
    user = TalkingUser(["hi"] * 9)
    policy = Sampler(lambda _request: (ids_of("hello there"), True))
    episode = await dialogue(domain, policy, user, **limits).run()
    assert episode.outcome == outcome
    assert episode.reward == 0.0


async def test_an_episode_survives_its_journal(domain: Domain) -> None:
    policy = says(PUT, "naïve 🙂 1.0", "Done.")
    episode = await dialogue(domain, policy, TalkingUser(["hi", "\x00 é"])).run()
    assert decode_episode(encode_episode(episode)) == episode
