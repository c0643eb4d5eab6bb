"""Responses under an episode's key: items in, items out, and the events of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialogue_kit import called, led, says
from gateway_kit import wire

from muarl.domain import Domain
from muarl.gateway.server import Gateway
from muarl.own_loop import AgentContext
from muarl.record import Episode, Outcome

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
GET_PUT = "hello" + called(
    '{"name": "get", "arguments": {"key": "old"}}',
    '{"name": "put", "arguments": {"key": "a", "value": 1}}',
)


def functions(context: AgentContext) -> list[dict[str, Any]]:
    return [{"type": "function", **tool.as_function()["function"]} for tool in context.tools]


async def led_by(notes: Domain, agent: Any, *said: str, texts: list[str] | None = None) -> Episode:
    episode = await led(notes, agent, says(*said), texts).run()
    assert not episode.outcome.is_fault, episode.error
    return episode


@pytest.mark.parametrize("by_id", [True, False], ids=["previous_response_id", "whole history"])
@pytest.mark.parametrize("said", [PUT, GET_PUT, "<think>so</think>" + PUT])
async def test_a_conversation_of_items_goes_on_token_exactly(
    notes: Domain, by_id: bool, said: str
) -> None:
    async def agent(context: AgentContext) -> None:
        rules, opening = context.opening
        async with wire(await context.endpoint()) as client:
            items: list[Any] = [{"role": "user", "content": opening.content}]
            sent, before = items, None
            while True:
                answer = await client.respond(
                    sent if by_id else items,
                    instructions=rules.content,
                    tools=functions(context),
                    previous_response_id=before,
                )
                if answer.status != 200:
                    return
                output, sent = answer.body["output"], []
                items += output
                before = answer.body["id"] if by_id else None
                for item in output:
                    if item["type"] == "function_call":
                        result = await context.call_tool(
                            item["name"], json.loads(item["arguments"])
                        )
                        sent.append(
                            {
                                "type": "function_call_output",
                                "call_id": item["call_id"],
                                "output": result.content,
                            }
                        )
                if not sent:
                    text = output[-1]["content"][0]["text"]
                    reply = await context.tell_user(text)
                    sent.append({"role": "user", "content": reply.content})
                items += sent

    episode = await led_by(notes, agent, said, "Done.", "Bye.", texts=["note it", "yes"])
    assert (episode.outcome, episode.reward, episode.forks) == (Outcome.COMPLETED, 1.0, 0)
    assert len(episode.turns) == 3
    assert all(turn.made is None for turn in episode.turns)


async def answered(notes: Domain, *said: str, **fields: Any) -> Any:
    answers: list[Any] = []

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            given = fields.pop("input", "hello")
            answers.append(await client.respond(given, tools=functions(context), **fields))

    await led_by(notes, agent, *said)
    return answers[0]


async def test_a_response_has_the_form_of_one(notes: Domain) -> None:
    answer = await answered(notes, "<think>so</think>" + GET_PUT)
    assert (answer.status, answer.body["object"], answer.body["status"]) == (
        200,
        "response",
        "completed",
    )
    assert [item["type"] for item in answer.body["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    usage = answer.body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


async def test_the_events_of_a_stream_come_in_order_and_carry_the_whole(notes: Domain) -> None:
    answer = await answered(notes, GET_PUT, stream=True)
    kinds = [event["type"].removeprefix("response.") for event in answer.body]
    message = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    call = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert kinds == ["created", "in_progress", *message, *call, *call, "completed"]
    assert [event["sequence_number"] for event in answer.body] == list(range(len(kinds)))
    whole = answer.body[-1]["response"]
    done = [event["item"] for event in answer.body if event["type"].endswith("item.done")]
    assert whole["output"] == done
    assert whole == (await answered(notes, GET_PUT)).body


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"input": ""}, 400, "at least one message"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, 400, "'item_reference'"),
        ({"input": [{"role": "user"}]}, 400, "content"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, 400, "input_image"),
        ({"previous_response_id": "resp_9"}, 404, "no response 'resp_9'"),
        ({"conversation": "c"}, 400, "previous_response_id"),
        ({"background": True}, 400, "background"),
        ({"include": ["message.output_text.logprobs"]}, 400, "include"),
        ({"text": {"format": {"type": "json_object"}}}, 400, "text"),
        ({"max_output_tokens": 0}, 400, "max_output_tokens"),
        ({"temperature": 0}, 400, "temperature: 0 would be ignored"),
    ],
)
async def test_what_is_not_done_is_refused_by_name(
    notes: Domain, fields: dict[str, Any], status: int, words: str
) -> None:
    answer = await answered(notes, "hello", **fields)
    assert answer.status == status
    assert words in answer.body["error"]["message"]


async def test_a_response_of_another_dialogue_is_not_known(notes: Domain) -> None:
    """An id that an agent keeps where all its dialogues see it is refused, and taken for none of their own."""
    async with Gateway() as gateway:
        ids: list[str] = []
        answers: list[Any] = []

        async def agent(context: AgentContext) -> None:
            async with wire(await context.endpoint()) as client:
                ids.append((await client.respond("hello")).body["id"])
                answers.append(await client.respond("and", previous_response_id=ids[0]))

        for _ in range(2):
            dialogue = led(notes, agent, says("hello", "there"))
            dialogue._gateway = gateway
            await dialogue.run()
    assert [answer.status for answer in answers] == [200, 404]
    assert answers[1].code == "previous_response_not_found"


async def test_what_clients_send_unasked_is_let_pass(notes: Domain) -> None:
    answer = await answered(
        notes,
        "hello",
        include=[],
        store=True,
        truncation="disabled",
        text={"format": {"type": "text"}},
        reasoning={"effort": None, "summary": None},
    )
    assert answer.status == 200, answer.body


async def test_what_the_policy_thought_or_called_in_a_row_is_one_message(notes: Domain) -> None:
    """Whatever order a client sends its items in: two messages in a row stay two."""
    items = [
        {"role": "user", "content": "hello"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "one"}]},
        {"type": "function_call", "call_id": "c", "name": "get", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"role": "assistant", "content": "two"},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "go on"},
    ]
    seen: list[Any] = []

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            assert (await client.respond(items)).status == 200

    policy = says("hello")
    await led(notes, agent, policy).run()
    seen = [(message.role, message.content) for message in policy.requests[0].history]
    assert seen == [
        ("user", "hello"),
        ("assistant", "one"),
        ("tool", "1"),
        ("assistant", "two"),
        ("assistant", "three"),
        ("user", "go on"),
    ]
    assert policy.requests[0].history[1].reasoning == "so"
    assert policy.requests[0].history[1].tool_calls[0].name == "get"
    assert policy.requests[0].history[2].name == "get"
