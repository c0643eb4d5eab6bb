"""The public stand-ins do what their docstrings say."""

from __future__ import annotations

import anyio
import pytest

from muarl.errors import PolicyError, UserError
from muarl.policy import GenerateRequest, Policy
from muarl.record import Outcome, UserReply
from muarl.testing import (
    Say,
    ScriptedPolicy,
    ScriptedUserStub,
    build_episode,
    build_key,
    run_in_virtual_time,
    virtual_time,
)
from muarl.user import User

pytestmark = pytest.mark.anyio

STOP = 999


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


def encode(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def ask(dialogue: str = "d", max_tokens: int = 64) -> GenerateRequest:
    return GenerateRequest([1, 2], dialogue, 0, max_tokens, 1.0, (STOP, 998))


async def test_a_scripted_policy_says_its_messages_in_each_dialogue_from_the_first_on() -> None:
    policy = ScriptedPolicy(["ab", "c"], encode)
    said = [await policy.generate(ask(name)) for name in ("x", "y", "x")]
    assert [g.token_ids for g in said] == [[97, 98, STOP], [97, 98, STOP], [99, STOP]]
    assert said[0].logprobs == [-0.001, -0.002, -0.003]
    assert [request.dialogue for request in policy.requests] == ["x", "y", "x"]
    assert said[0].finish_reason == "stop"
    with pytest.raises(PolicyError, match="2 messages, and dialogue 'x' asked for one more"):
        await policy.generate(ask("x"))


async def test_a_message_that_finishes_for_length_has_no_stop_token() -> None:
    policy = ScriptedPolicy(["abcd", "abc"], encode)
    cut = await policy.generate(ask(max_tokens=4))
    assert (cut.token_ids, cut.finish_reason) == ([97, 98, 99, 100], "length")
    fits = await policy.generate(ask(max_tokens=4))
    assert (fits.token_ids, fits.finish_reason) == ([97, 98, 99, STOP], "stop")
    assert len(cut.logprobs) == 4


async def test_logprobs_version_and_the_script_itself_may_be_given() -> None:
    policy: ScriptedPolicy = ScriptedPolicy(
        lambda request: Say(request.dialogue, logprobs=(-1.0, -2.0)), encode
    )
    policy.policy_version = 7
    said = await policy.generate(ask("q"))
    assert (said.token_ids, said.logprobs) == ([ord("q"), STOP], [-1.0, -2.0])
    assert said.policy_version == 7
    with pytest.raises(ValueError, match="'qq' has 3 sampled ids and 2 logprobs"):
        await policy.generate(ask("qq"))


def test_latency_passes_in_virtual_time() -> None:
    policy = ScriptedPolicy(["a", "b"], encode, latency_s=3600.0)

    async def main() -> float:
        await policy.generate(ask())
        return anyio.current_time()

    assert run_in_virtual_time(main) == 3600.0
    assert run_in_virtual_time(main) == 3600.0, "each run has a clock of its own"


@pytest.mark.parametrize("anyio_backend", [virtual_time()], ids=["virtual"])
async def test_the_virtual_clock_is_a_backend_for_async_tests() -> None:
    await anyio.sleep(3600.0)
    assert anyio.current_time() >= 3600.0


async def test_a_scripted_user_goes_through_her_replies_and_remembers_what_she_heard() -> None:
    user = ScriptedUserStub(["Hello.", UserReply("Bye.", stop=True, act="stop")])
    assert await user.open() == UserReply("Hello.")
    assert await user.reply("How can I help?") == UserReply("Bye.", stop=True, act="stop")
    assert user.heard == ["How can I help?"]
    with pytest.raises(UserError, match="2 replies, and one more"):
        await user.reply("Still there?")


def test_the_stand_ins_fulfil_the_protocols() -> None:
    policy: Policy = ScriptedPolicy([], encode)
    user: User = ScriptedUserStub([])
    assert policy.policy_version == 0
    assert user is not None


@pytest.mark.parametrize("num_turns", [1, 2, 5])
def test_a_built_episode_is_consistent_in_its_tokens(num_turns: int) -> None:
    episode = build_episode(num_turns=num_turns)
    (sample,) = episode.samples
    assert len(sample.loss_mask()) == len(sample.token_ids)
    assert sum(sample.loss_mask()) == len(sample.logprobs) == episode.num_sampled
    assert [(t.start, t.end) for t in episode.turns] == [(s.start, s.end) for s in sample.spans]
    assert sample.loss_mask()[-1]
    assert [turn.reply.stop for turn in episode.turns if turn.reply] == [
        i == num_turns - 1 for i in range(num_turns)
    ]


def test_built_faults_have_an_error_and_no_reward_and_any_field_can_be_set() -> None:
    key = build_key("t", 3, phase="eval:cold", iteration=2, run_seed=9)
    fault = build_episode(key, outcome=Outcome.USER_FAULT, persona="curt")
    assert (fault.key, fault.persona, fault.reward) == (key, "curt", None)
    assert fault.error
    assert build_episode(reward=0.5).reward == 0.5
    assert build_episode(error="odd").error == "odd"
