"""A scripted user does on her device what she is asked to, and tells what came of it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from muarl.errors import UserError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import UserReply
from muarl.spec import PersonaSpec, UserGoalSpec, UserScriptSpec
from muarl.user.scripted import ScriptedUser

pytestmark = pytest.mark.anyio

SCRIPT: dict[str, Any] = {
    "understands": {
        "do:apn": ["set the apn"],
        "do:look": ["look at"],
        "do:off": ["turn it off"],
        "done": ["done"],
    },
    "actions": {
        "apn": {"tool": "set_apn", "arguments": {"to": "{apn}", "deep": [{"n": 1}]}},
        "look": {"tool": "status"},
        "off": {"tool": "off"},
    },
    "phrasings": {
        "any": {
            "open": ["help"],
            "did:look": ["signal {signal}, sims {sim.slots}, roaming {roaming}", "nothing"],
            "failed:off": ["it says {result}"],
            "unknown": ["no idea"],
            "stop": ["bye"],
        }
    },
}


class Phone:
    """Answers as it is told, and keeps what was called."""

    tools: tuple[ToolSpec, ...] = ()

    def __init__(self, **answers: ToolResult) -> None:
        self.answers = answers
        self.calls: list[ToolCall] = []

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        return self.answers.get(call.name, ToolResult(call.id, call.name, "ok"))


def she(*facts: tuple[str, str], phone: Phone | None = None) -> ScriptedUser:
    goal = UserGoalSpec.model_validate(
        {
            "requests": [{"ask": "x"}],
            "facts": [{"id": name, "value": v, "disclose": "never"} for name, v in facts],
        }
    )
    persona = PersonaSpec(style="plain")
    script = UserScriptSpec.model_validate(SCRIPT)
    user = ScriptedUser(script, persona, goal, "train", random.Random(0))
    if phone is not None:
        user.take(phone)
    return user


async def test_she_fills_arguments_from_her_facts_even_those_she_does_not_tell() -> None:
    phone = Phone()
    reply = await she(("apn", "net.x"), phone=phone).reply("please set the APN")
    assert [(c.name, c.arguments) for c in phone.calls] == [
        ("set_apn", {"to": "net.x", "deep": [{"n": 1}]})
    ]
    assert reply.act == "did:apn"
    assert "ok" in reply.text


async def test_without_the_fact_she_does_not_know_and_does_nothing() -> None:
    phone = Phone()
    assert await she(phone=phone).reply("set the apn") == UserReply("no idea", act="unknown")
    assert phone.calls == []


async def test_she_tells_the_fields_of_what_her_tool_answers() -> None:
    said = '{"signal": "good", "sim": {"slots": [1, "e"]}, "roaming": false, "number": null}'
    reply = await she(phone=Phone(status=ToolResult("", "status", said))).reply("look at it")
    assert reply.text == "signal good, sims 1, e, roaming no"


async def test_what_the_answer_lacks_is_not_told() -> None:
    reply = await she(phone=Phone(status=ToolResult("", "status", "[1]"))).reply("look at it")
    assert reply.text == "nothing"


async def test_an_error_of_her_tool_is_told() -> None:
    phone = Phone(off=ToolResult("", "off", "it is off already", is_error=True))
    reply = await she(phone=phone).reply("turn it off")
    assert (reply.text, reply.act) == ("it says it is off already", "failed:off")


async def test_each_call_has_an_id_of_its_own_and_the_same_seed_says_the_same() -> None:
    texts = []
    for _ in range(2):
        phone = Phone()
        user = she(("apn", "net.x"), phone=phone)
        texts.append([(await user.reply("set the apn")).text for _ in range(3)])
        assert len({call.id for call in phone.calls}) == 3
    assert texts[0] == texts[1]


async def test_without_a_device_it_is_her_fault() -> None:
    with pytest.raises(UserError, match="she is to do 'off', and was given no device"):
        await she().reply("turn it off")
