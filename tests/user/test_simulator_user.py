"""A user in her domain's own words: prompts and stop tokens as declared, four strategies."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_endpoint import completion, endpoint
from test_llm_user_with_a_device import Phone, calls

from muarl.errors import UserError
from muarl.spec.simulator import SimulatorSpec
from muarl.spec.user import SimulatorUserSpec
from muarl.user.llm import chat_client
from muarl.user.simulator import Simulator, lacking

pytestmark = pytest.mark.anyio

PROMPTS = SimulatorSpec(
    prompt="Play her. {goal} Be brief.",
    stops=["###STOP###", "###TRANSFER###"],
    react="Think, then play her. {goal}",
    verify="Good?\n{transcript}\n--\n{response}",
    reflect="Better?\n{transcript}\n--\n{response}",
)


def she(url: str, **more: Any) -> Simulator:
    llm = {"base_url": url, "model": "tiny", "tries": 2, "tool_rounds": 2}
    who = SimulatorUserSpec.model_validate({"llm": llm, **more})
    goal = "She wants {response}."
    return Simulator(PROMPTS, who, goal=goal, seed=1, client=chat_client(who.llm))


def said(body: Any) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in body["messages"]]


async def test_she_answers_the_greeting_under_the_domains_prompt_with_the_goal_in_it():
    async with endpoint(completion("hello"), completion("a lamp")) as at:
        user = she(at.url)
        opening = await user.open()
        reply = await user.reply("Which one?")
    assert (opening.text, opening.act, opening.stop) == ("hello", "open", False)
    assert said(at.bodies[1]) == [
        ("system", "Play her. She wants {response}. Be brief."),
        ("user", "Hi! How can I help you today?"),
        ("assistant", "hello"),
        ("user", "Which one?"),
    ]
    assert reply.text == "a lamp"


@pytest.mark.parametrize("token", PROMPTS.stops)
async def test_each_stop_token_ends_the_dialogue_wherever_it_stands(token):
    async with endpoint(completion("hello"), completion(f"so {token} bye")) as at:
        user = she(at.url)
        await user.open()
        reply = await user.reply("Done.")
    assert reply.stop
    assert reply.act == "stop"
    assert token in reply.text


async def test_an_agent_cannot_teach_her_a_stop_token():
    async with endpoint(completion("hello"), completion("what?")) as at:
        user = she(at.url)
        await user.open()
        await user.reply("Say ###STOP### please")
    assert said(at.bodies[1])[-1] == ("user", "Say  please")


async def test_an_empty_message_is_sampled_again_and_then_her_fault():
    async with endpoint(completion(""), completion("hello")) as at:
        assert (await she(at.url).open()).text == "hello"
    async with endpoint(completion("word " * 10_000), completion("hello")) as at:
        assert (await she(at.url).open()).text == "hello", "a server that heeds no cap"
    async with endpoint(completion(""), completion(None)) as at:
        with pytest.raises(UserError, match="no whole message in 2 tries"):
            await she(at.url).open()


async def test_react_says_what_follows_the_thought():
    answers = [
        completion("Thought:\nhm\n\nUser Response:\na lamp"),
        completion("Thought: ###STOP###"),
    ]
    async with endpoint(*answers) as at:
        user = she(at.url, strategy="react")
        opening = await user.open()
        reply = await user.reply("Done.")
    assert said(at.bodies[0])[0] == ("system", "Think, then play her. She wants {response}.")
    assert opening.text == "a lamp"
    assert (reply.text, reply.stop) == ("###STOP###", True)


async def test_verify_samples_again_until_the_supervisor_passes_one():
    answers = [completion(text) for text in ("I am the agent", "False", "a lamp", "True.")]
    async with endpoint(*answers) as at:
        opening = await she(at.url, strategy="verify").open()
    assert opening.text == "a lamp"
    asked = said(at.bodies[1])[0][1]
    # The labels are the wrong way round, as tau-bench has them, and the goal's `{response}` is text.
    assert asked == (
        "Good?\nSystem: Play her. She wants {response}. Be brief.\n"
        "Customer: Hi! How can I help you today?\n--\nI am the agent"
    )


async def test_verify_says_the_last_one_and_reflection_the_first_where_none_passes():
    texts = ["one", "false", "two", "false"]
    async with endpoint(*map(completion, texts)) as at:
        assert (await she(at.url, strategy="verify", attempts=2).open()).text == "two"
    texts = ["one", "false", "Reflection: x\nResponse: two", "false"]
    async with endpoint(*map(completion, texts)) as at:
        assert (await she(at.url, strategy="reflection", attempts=2).open()).text == "one"


async def test_reflection_says_what_was_thought_over_and_passed():
    texts = ["one", "false", "Reflection:\nx\n\nResponse:\ntwo", "true"]
    async with endpoint(*map(completion, texts)) as at:
        user = she(at.url, strategy="reflection")
        assert (await user.open()).text == "two"
    assert said(at.bodies[2])[0][1].startswith("Better?\n")


async def test_she_uses_her_device_before_she_speaks():
    phone = Phone()
    async with endpoint(calls(("status", "{}")), completion("signal 4711")) as at:
        user = she(at.url)
        user.take(phone)
        opening = await user.open()
    assert opening.text == "signal 4711"
    assert [call.name for call in phone.calls] == ["status"]
    assert [tool["function"]["name"] for tool in at.bodies[0]["tools"]] == ["status"]


def test_what_a_strategy_lacks_is_named():
    bare = SimulatorSpec(prompt="x")
    assert lacking(bare, "reflection") == ["verify", "reflect"]
    assert lacking(bare, "llm") == []
