"""An LLM user with a device calls her tools at the endpoint, reads the answers, and then speaks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dialogue_kit import dialogue, ids_of
from phone_kit import phone_task, write_phones
from scripted_endpoint import completion, endpoint

from muarl.data.replay import replay_differences
from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import Outcome, UserReply
from muarl.spec import PersonaSpec
from muarl.spec.user import LlmUserSpec
from muarl.testing import ScriptedPolicy
from muarl.user.llm import LlmUser, chat_client
from muarl.user.role import STOP

pytestmark = pytest.mark.anyio

PERSONA = PersonaSpec(style="Friendly.")


def she(url: str, **more: Any) -> LlmUser:
    given = {"base_url": url, "model": "tiny", "tool_rounds": 3, "tries": 2}
    spec = LlmUserSpec(**(given | more))
    return LlmUser(
        spec,
        persona=PERSONA,
        goal="Your phone is dead; have it mended.",
        seed=1,
        client=chat_client(spec),
    )


def calls(*made: tuple[str, str], text: str | None = None) -> bytes:
    listed = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(made)
    ]
    return completion(text, "tool_calls", tool_calls=listed)


class Phone:
    """A device of a test."""

    tools = (ToolSpec("status", "Looks.", {"type": "object", "properties": {}}),)

    def __init__(self, fault: str = "") -> None:
        self.calls: list[ToolCall] = []
        self._fault = fault

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        if self._fault:
            raise ToolServerError(self._fault)
        if call.error:
            return ToolResult(call.id, call.name, call.error, is_error=True)
        return ToolResult(call.id, call.name, "signal 4711")


async def talk(phone: Phone, *answers: bytes, heard: Sequence[str] = (), **spec: Any) -> Any:
    async with endpoint(*answers) as server:
        her = she(server.url, **spec)
        her.take(phone)
        replies = [await her.open(), *[await her.reply(text) for text in heard]]
    return replies, server.bodies


async def test_she_is_told_of_her_tools_and_reads_what_they_answer() -> None:
    answers = [completion("My phone is dead."), calls(("status", "{}")), completion("Signal 4711.")]
    phone = Phone()
    replies, bodies = await talk(phone, *answers, heard=["Please look at it."])
    assert replies == [
        UserReply("My phone is dead.", act="open"),
        UserReply("Signal 4711."),
    ], "what her device says she has not invented"
    assert [call.name for call in phone.calls] == ["status"]
    assert bodies[0]["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "status",
                "description": "Looks.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]
    *_, asked, called, answered = bodies[2]["messages"]
    assert asked == {"role": "user", "content": "Please look at it."}
    assert called["tool_calls"][0]["function"] == {"name": "status", "arguments": "{}"}
    assert answered == {"role": "tool", "content": "signal 4711", "tool_call_id": "c0"}
    assert "You have a device of your own" in bodies[0]["messages"][0]["content"]
    assert "You can only talk" not in bodies[0]["messages"][0]["content"]
    assert len({body["seed"] for body in bodies}) == 3


async def test_she_remembers_what_she_did_in_later_turns() -> None:
    answers = [calls(("status", "")), completion("It is dead."), completion("Thanks.")]
    _, bodies = await talk(Phone(), *answers, heard=["Wait."])
    roles = [message["role"] for message in bodies[2]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_several_calls_of_one_answer_run_in_order_and_bad_arguments_are_told() -> None:
    phone = Phone()
    made = calls(("status", "{}"), ("status", "{no"), ("status", "[1]"))
    _, bodies = await talk(phone, made, completion("It is dead."))
    assert [call.error is None for call in phone.calls] == [True, False, False]
    told = [m["content"] for m in bodies[1]["messages"] if m["role"] == "tool"]
    assert told[0] == "signal 4711"
    assert told[1].startswith("Error: the arguments are no JSON:")
    assert told[2] == "Error: the arguments are no JSON object"


async def test_after_so_many_rounds_she_must_speak() -> None:
    phone = Phone()
    looks = [calls(("status", "{}"))] * 3
    replies, bodies = await talk(phone, *looks, completion("It is dead."))
    assert replies[0].text == "It is dead."
    assert len(phone.calls) == 3
    assert ["tools" in body for body in bodies] == [True, True, True, False]


async def test_what_she_did_is_not_done_again_when_her_message_is_sampled_again() -> None:
    phone = Phone()
    bad = completion("Assistant: how can I help?")
    _, bodies = await talk(phone, calls(("status", "{}")), bad, completion("It is dead."))
    assert len(phone.calls) == 1
    assert [m["role"] for m in bodies[2]["messages"]] == ["system", "user", "assistant", "tool"]


async def test_a_fault_of_her_device_is_no_fault_of_hers_L2() -> None:
    async with endpoint(calls(("status", "{}"))) as server:
        her = she(server.url)
        her.take(Phone("dead server"))
        with pytest.raises(ToolServerError, match="dead server"):
            await her.open()


async def test_a_whole_dialogue_of_both_sides_is_recorded_and_replayed(tmp_path: Path) -> None:
    domain = write_phones(tmp_path)
    task = phone_task(world={"device": {"airplane": True}})
    policy = ScriptedPolicy(["turn airplane mode off", "bye"], encode=ids_of)
    answers = [
        completion("No signal."),
        calls(("set_airplane", '{"on": false}'), ("status", "{}")),
        completion("I turned it off, I can call."),
        completion(f"Thanks.\n{STOP}"),
    ]
    async with endpoint(*answers) as server:
        episode = await dialogue(domain, policy, she(server.url), task=task).run()
    assert (episode.error, episode.outcome) == (None, Outcome.COMPLETED)
    assert [name for name, _, _ in episode.user_calls()] == ["set_airplane", "status"]
    assert [str(change) for change in episode.changes] == [
        "device.airplane: True -> False",
        "device.can_call: False -> True",
    ]
    assert await replay_differences(domain, task, episode) == []
