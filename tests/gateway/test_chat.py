"""Chat completions under an episode's key: what they answer, refuse, and leave in the record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialogue_kit import called, led, renderer, says
from gateway_kit import Answer, Wire, as_chat, wire

from muarl.domain import Domain
from muarl.own_loop import AgentContext
from muarl.record import Outcome

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
BOTH = called(
    '{"name": "get", "arguments": {"key": "old"}}',
    '{"name": "put", "arguments": {"key": "a", "value": 1}}',
)


def functions(context: AgentContext) -> list[dict[str, Any]]:
    return [tool.as_function() for tool in context.tools]


async def plain(context: AgentContext) -> None:
    """muarl's own loop, over HTTP."""
    async with wire(await context.endpoint()) as client:
        history = [as_chat(message) for message in context.opening]
        while True:
            answer = await client.chat(*history, tools=functions(context))
            if answer.status != 200:
                return
            history.append(answer.said)
            for call in answer.said.get("tool_calls", ()):
                name, given = call["function"]["name"], json.loads(call["function"]["arguments"])
                result = await context.call_tool(name, given)
                history.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": result.content}
                )
            if not answer.said.get("tool_calls"):
                history.append(as_chat(await context.tell_user(answer.said["content"])))


@pytest.mark.parametrize(
    ("said", "limits", "outcome"),
    [
        ((PUT, "Done.", "Bye."), {}, Outcome.COMPLETED),
        ((BOTH, "Done.", "Bye."), {}, Outcome.COMPLETED),
        (("<think>so</think>hello", PUT, "Done.", "Bye."), {}, Outcome.COMPLETED),
        (("<tool_call>\n{broken\n</tool_call>", PUT, "Done.", "Bye."), {}, Outcome.COMPLETED),
        (("hello",) * 9, {"max_turns": 1}, Outcome.TRUNCATED_TURNS),
        (("hello there user " * 9,), {"max_tokens": 4}, Outcome.TRUNCATED_LENGTH),
        (("hello",), {"context_tokens": 8}, Outcome.TRUNCATED_CONTEXT),
    ],
)
async def test_a_loop_over_http_gives_the_episode_of_one_without(
    notes: Domain, said: tuple[str, ...], limits: dict[str, int], outcome: Outcome
) -> None:
    async def direct(context: AgentContext) -> None:
        history = list(context.opening)
        while True:
            history.append(await context.generate(history))
            calls = [call for call in history[-1].tool_calls if call.error is None]
            raw = "".join(call.raw for call in history[-1].tool_calls if call.error)
            history.extend([await context.call_tool(call) for call in calls])
            if not calls:
                history.append(await context.tell_user(history[-1].content + raw))

    texts = ["note it", "yes"]
    over_http = await led(notes, plain, says(*said), list(texts), **limits).run()
    ours = await led(notes, direct, says(*said), list(texts), **limits).run()
    assert over_http.outcome is outcome, over_http.error
    assert over_http == ours
    assert over_http.forks == 0
    assert all(turn.made is None for turn in over_http.turns)


async def asked(notes: Domain, *said: str, ask: Any, **limits: Any) -> tuple[Answer, Any]:
    """What the first request is answered; and the episode."""
    answers: list[Answer] = []

    async def once(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            answers.append(await ask(client, context))

    episode = await led(notes, once, says(*said), **limits).run()
    assert not episode.outcome.is_fault, episode.error
    return answers[0], episode


HELLO = {"role": "user", "content": "hello"}


async def test_a_completion_has_the_form_of_one(notes: Domain) -> None:
    answer, episode = await asked(notes, "hello", ask=lambda client, _: client.chat(HELLO))
    (turn,) = episode.turns
    assert answer.status == 200
    assert answer.body["object"] == "chat.completion"
    assert answer.body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hello"},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer.body["usage"]["prompt_tokens"] == turn.start
    assert answer.body["usage"]["completion_tokens"] == turn.end - turn.start


async def test_a_stream_has_the_message_why_it_ended_and_its_tokens(notes: Domain) -> None:
    answer, _ = await asked(
        notes,
        BOTH,
        ask=lambda client, context: client.chat(
            HELLO,
            tools=functions(context),
            stream=True,
            stream_options={"include_usage": True},
        ),
    )
    message, end, usage, done = answer.body
    calls = message["choices"][0]["delta"]["tool_calls"]
    assert [(call["index"], call["id"]) for call in calls] == [(0, "call_0_0"), (1, "call_0_1")]
    assert end["choices"][0]["finish_reason"] == "tool_calls"
    assert (usage["choices"], usage["usage"]["total_tokens"] > 0) == ([], True)
    assert done == "[DONE]"
    assert answer.headers["Content-Type"] == "text/event-stream"


async def test_models_are_listed(notes: Domain) -> None:
    found: list[Any] = []

    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        async with wire(endpoint) as client:
            for path in ("models", "models/policy", "models/gpt"):
                url, headers = f"{endpoint.url}/{path}", endpoint.headers
                async with client._session.get(url, headers=headers) as response:
                    found.append((response.status, await response.json()))

    await led(notes, agent, says()).run()
    assert found[0][1]["data"] == [found[1][1]]
    assert found[1][1]["id"] == "policy"
    assert found[2][0] == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1.0},
        {"temperature": 1, "top_p": 1, "n": 1, "stop": None, "logit_bias": {}},
        {"tool_choice": "auto", "parallel_tool_calls": True, "store": False, "user": "me"},
        {"metadata": {"a": "b"}, "service_tier": "auto", "stream_options": None, "seed": None},
        {"response_format": {"type": "text"}, "logprobs": False, "frequency_penalty": 0.0},
        {"max_tokens": 100, "tools": None},
        {"stream_options": {"include_usage": None}, "response_format": {"type": "text", "x": None}},
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": None}}]},
    ],
)
async def test_what_changes_nothing_is_let_pass(notes: Domain, fields: dict[str, Any]) -> None:
    answer, _ = await asked(notes, "hello", ask=lambda client, _: client.chat(HELLO, **fields))
    assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"temperature": 0.2}, "temperature: 0.2 would be ignored, for the run samples at 1"),
        ({"top_p": 0.5}, "top_p: 0.5 would be ignored"),
        ({"n": 2}, "n: 2 would be ignored"),
        ({"n": True}, "n: true would be ignored"),
        ({"temperature": True}, "temperature: true would be ignored"),
        ({"seed": 3}, "seed: 3 would be ignored"),
        ({"stop": ["x"]}, "stop"),
        ({"logprobs": True}, "logprobs"),
        ({"tool_choice": "required"}, "the policy decides what it calls"),
        ({"parallel_tool_calls": False}, "how many calls it makes"),
        ({"response_format": {"type": "json_object"}}, "nothing constrains what is sampled"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"functions": []}, "functions: there is no such parameter here"),
        ({"max_tokens": 0}, "max_tokens: expected at least 1"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "tool_call_id"),
        ({"messages": [{"role": "user", "content": "x", "tool_call_id": "1"}]}, "tool_call_id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
            "image_url",
        ),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools"),
    ],
)
async def test_what_would_be_ignored_is_refused_by_name(
    notes: Domain, fields: dict[str, Any], words: str
) -> None:
    async def ask(client: Wire, _: Any) -> Answer:
        return await client.post(
            "chat/completions", {"model": "policy", "messages": [HELLO], **fields}
        )

    answer, episode = await asked(notes, "hello", ask=ask)
    assert answer.status == 400
    assert words in answer.body["error"]["message"]
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"
    assert not episode.turns


@pytest.mark.parametrize("body", [b"not json", b"[" * 100_000, b"\xff\xfe", b"[]", b"3"])
async def test_what_is_no_request_is_refused(notes: Domain, body: bytes) -> None:
    answer, _ = await asked(
        notes, "hello", ask=lambda client, _: client.post("chat/completions", body)
    )
    assert answer.status == 400


@pytest.mark.parametrize("depth", [900, 960, 975, 985, 995, 3000])
@pytest.mark.parametrize("name", ["logit_bias", "metadata", "tools"])
async def test_however_deep_a_request_is_it_is_answered_or_refused(
    notes: Domain, name: str, depth: int, caplog: pytest.LogCaptureFixture
) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    if name == "tools":
        deep = f'[{{"type": "function", "function": {{"name": "put", "parameters": {deep}}}}}]'
    body = f'{{"model": "policy", "messages": [{json.dumps(HELLO)}], "{name}": {deep}}}'
    answer, _ = await asked(
        notes,
        "hello",
        ask=lambda client, _: client.post("chat/completions", body.encode()),
        context_tokens=100_000,
    )
    assert answer.status in (200, 400), answer.body
    assert not caplog.records


async def test_another_model_is_not_there(notes: Domain) -> None:
    answer, _ = await asked(notes, "hello", ask=lambda client, _: client.chat(HELLO, model="gpt-5"))
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "only 'policy'" in answer.body["error"]["message"]


async def test_a_tool_of_the_domain_is_shown_as_the_domain_describes_it(notes: Domain) -> None:
    """However a framework rewrites its schema on the way."""

    async def ask(client: Wire, context: AgentContext) -> Answer:
        tools = functions(context)
        for tool in tools:
            schema = tool["function"]["parameters"]
            schema = {name: value for name, value in schema.items() if name != "title"}
            schema["additionalProperties"] = False
            tool["function"] |= {"parameters": schema, "strict": True}
        return await client.chat(HELLO, tools=tools)

    _, theirs = await asked(notes, "hello", ask=ask)
    _, ours = await asked(
        notes, "hello", ask=lambda client, context: client.chat(HELLO, tools=functions(context))
    )
    assert theirs.samples == ours.samples


async def test_what_only_python_holds_to_be_equal_is_another_conversation(notes: Domain) -> None:
    """`true` is not the number one, in a call that comes back or in a tool's schema."""

    def tools(default: Any) -> list[Any]:
        schema = {"type": "object", "properties": {"a": {"default": default}}}
        return [{"type": "function", "function": {"name": "put", "parameters": schema}}]

    async def ask(client: Wire, _: Any) -> Answer:
        first = await client.chat(HELLO, tools=tools(1))
        said = first.said
        (call,) = said["tool_calls"]
        result = {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        await client.chat(HELLO, said, result, tools=tools(True))
        call["function"]["arguments"] = '{"key": "a", "value": true}'
        return await client.chat(HELLO, said, result, tools=tools(1))

    _, episode = await asked(notes, PUT, "hello", "there", ask=ask)
    _first, other_tools, other_call = (
        episode.samples[turn.sample].token_ids[: turn.start] for turn in episode.turns
    )
    assert episode.forks == 2
    assert renderer().tokenizer.decode(other_tools).count("true") == 1
    assert renderer().tokenizer.decode(other_call).count("true") == 1


async def test_a_tool_of_the_agents_own_is_shown_as_it_was_sent(notes: Domain) -> None:
    mine = {"type": "function", "function": {"name": "put", "description": "Of mine."}}
    _, episode = await asked(notes, "hello", ask=lambda client, _: client.chat(HELLO, tools=[mine]))
    _, without = await asked(notes, "hello", ask=lambda client, _: client.chat(HELLO))
    assert len(episode.samples[0].token_ids) > len(without.samples[0].token_ids)
