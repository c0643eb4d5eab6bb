"""Real clients, unmodified: the openai SDK, pydantic-ai and openai-agents play domains, their tokens exact."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import Sampler, called, check_threads, ids_of, led

from muarl.data.expert import ExpertPolicy, byte_limits, byte_renderer
from muarl.domain import Domain, load_domain
from muarl.own_loop import AgentContext, AgentLoop
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, Outcome
from muarl.rollouts import Rollouts
from muarl.seeds import generator
from muarl.spec.run import RolloutSpec

ROOT = Path(__file__).parents[2]
CLIENTS = ("openai", "pydantic_ai", "agents")
LACKING = [name for name in CLIENTS if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        bool(LACKING) and not os.environ.get("MUARL_REQUIRE_CLIENTS"),
        reason=f"not installed: {', '.join(LACKING)} (pip install 'muarl[clients]')",
    ),
]


def agent_of(path: Path) -> AgentLoop:
    """What a run file names as `agents/FILE.py:agent`."""
    found = importlib.util.spec_from_file_location(f"agent_file_{path.stem}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    agent: AgentLoop = module.agent
    return agent


class Experts:
    """The desk's expert, in every dialogue."""

    policy_version = 0

    def __init__(self, domain: Domain) -> None:
        self._tasks = {task.id: task for task in domain.tasks("train")}
        self._domain = domain
        self.renderer = byte_renderer()
        self._experts: dict[str, ExpertPolicy] = {}

    async def generate(self, request: GenerateRequest) -> Generation:
        name = request.dialogue
        if name not in self._experts:
            task = self._tasks[name.split("/")[2]]
            expert = self._domain.expert(task, {}, generator(0, name))
            self._experts[name] = ExpertPolicy(expert, self.renderer)
        return await self._experts[name].generate(request)


@pytest.fixture(scope="module")
def desk() -> Domain:
    return load_domain(ROOT / "domains" / "desk")


async def played(desk: Domain, loop: AgentLoop | None, count: int) -> list[Episode]:
    limits = byte_limits(RolloutSpec(concurrency=count, deadline_s=3600))  # on any machine
    tasks = desk.tasks("train")[:count]
    settings: dict[str, Any] = {"tasks": tasks, "loop": loop, "limits": limits}
    policy = Experts(desk)
    async with Rollouts(desk, policy, policy.renderer, **settings) as rollouts:
        episodes = [episode async for group in rollouts for episode in group.episodes]
    return sorted(episodes, key=lambda episode: str(episode.key))


@pytest.fixture(scope="module")
def ours(desk: Domain) -> list[Episode]:
    return anyio.run(played, desk, None, 64)


@pytest.mark.parametrize("name", ["openai_sdk", "pydantic_ai_desk", "openai_agents_desk"])
async def test_64_dialogues_at_once_are_those_of_muarls_own_loop(
    desk: Domain, ours: list[Episode], name: str
) -> None:
    """Byte for byte: no two of them mix, and the tokens are those that muarl's own loop has."""
    theirs = await played(desk, agent_of(ROOT / "specs" / "agents" / f"{name}.py"), 64)
    assert [episode.error for episode in theirs if episode.error] == []
    assert theirs == ours
    assert {episode.reward for episode in theirs} == {1.0}


BOTH = "hello" + called(
    '{"name": "get", "arguments": {"key": "old"}}',
    '{"name": "put", "arguments": {"key": "a", "value": 1}}',
)
SAID = [BOTH, "Done.", "Bye."]


async def streamed_chat(context: AgentContext) -> None:
    from openai import AsyncOpenAI

    endpoint = await context.endpoint()
    tools: Any = [tool.as_function() for tool in context.tools]
    messages: list[Any] = [{"role": m.role, "content": m.content} for m in context.opening]
    async with AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key) as client:
        while True:
            async with client.chat.completions.stream(
                model=endpoint.model,
                messages=messages,
                tools=tools,
                stream_options={"include_usage": True},
            ) as stream:
                whole = await stream.get_final_completion()
            assert whole.usage is not None
            said = whole.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls or []:
                result = await context.call_tool(
                    call.function.name, json.loads(call.function.arguments)
                )
                answer = {"role": "tool", "tool_call_id": call.id, "content": result.content}
                messages.append(answer)
            if not said.tool_calls:
                reply = await context.tell_user(said.content or "")
                messages.append({"role": "user", "content": reply.content})


async def streamed_responses(context: AgentContext) -> None:
    from openai import AsyncOpenAI

    endpoint = await context.endpoint()
    tools: Any = [{"type": "function", **t.as_function()["function"]} for t in context.tools]
    rules, opening = (message.content for message in context.opening)
    sent: list[Any] = [{"role": "user", "content": opening}]
    before: Any = None
    async with AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key) as client:
        while True:
            more = {} if before is None else {"previous_response_id": before}
            async with client.responses.stream(
                model=endpoint.model, instructions=rules, input=sent, tools=tools, **more
            ) as stream:
                whole = await stream.get_final_response()
            before, sent = whole.id, []
            for item in whole.output:
                if item.type == "function_call":
                    result = await context.call_tool(item.name, json.loads(item.arguments))
                    sent.append(
                        {
                            "type": "function_call_output",
                            "call_id": item.call_id,
                            "output": result.content,
                        }
                    )
            if not sent:
                reply = await context.tell_user(whole.output_text)
                sent.append({"role": "user", "content": reply.content})


async def pydantic_ai_with_tools_of_its_own(context: AgentContext) -> None:
    """A stream, over responses; functions that call the domain's tools."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    endpoint = await context.endpoint()
    rules, text = (message.content for message in context.opening)
    model = OpenAIResponsesModel(
        endpoint.model, provider=OpenAIProvider(base_url=endpoint.url, api_key=endpoint.key)
    )
    agent = Agent(model, instructions=rules)

    @agent.tool_plain
    async def get(key: str) -> str:
        """Read a note."""
        return (await context.call_tool("get", {"key": key})).content

    @agent.tool_plain
    async def put(key: str, value: int) -> str:
        """Write a note."""
        return (await context.call_tool("put", {"key": key, "value": value})).content

    history = None
    while True:
        async with agent.run_stream(text, message_history=history) as stream:
            output = await stream.get_output()
            history = stream.all_messages()
        text = (await context.tell_user(output)).content


async def openai_agents_over_chat(context: AgentContext) -> None:
    """A stream, over chat completions; tools over MCP."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    endpoint = await context.endpoint()
    rules, text = (message.content for message in context.opening)
    place: Any = {"url": endpoint.mcp_url, "headers": endpoint.headers}
    async with (
        AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key) as client,
        MCPServerStreamableHttp(params=place) as tools,
    ):
        model = OpenAIChatCompletionsModel(endpoint.model, client)
        agent = Agent("notes", instructions=rules, model=model, mcp_servers=[tools])
        items: list[Any] = [{"role": "user", "content": text}]
        while True:
            run = Runner.run_streamed(agent, items)
            async for _event in run.stream_events():
                pass
            reply = await context.tell_user(run.final_output)
            items = [*run.to_input_list(), {"role": "user", "content": reply.content}]


@pytest.mark.parametrize(
    "loop",
    [
        streamed_chat,
        streamed_responses,
        pydantic_ai_with_tools_of_its_own,
        openai_agents_over_chat,
    ],
)
async def test_streams_tools_and_both_forms_keep_tokens_exact(
    notes: Domain, loop: AgentLoop
) -> None:
    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        turn = sum(message.role == "assistant" for message in request.history)
        return ids_of(SAID[turn]), True

    policy = Sampler(draw)
    episode = await led(notes, loop, policy, ["note it", "yes"]).run()
    assert not episode.outcome.is_fault, episode.error
    check_threads(episode, policy)
    assert (episode.outcome, episode.reward, episode.forks) == (Outcome.COMPLETED, 1.0, 0)
    assert [result.content for result in episode.turns[0].results] == ["1", "ok"]
    assert all(turn.made is None for turn in episode.turns)


async def test_the_end_reaches_a_client_that_tries_again_of_its_own_accord(notes: Domain) -> None:
    """The openai SDK tries twice more what may do better later; this may not."""
    from openai import APIStatusError, AsyncOpenAI

    seen: list[int] = []

    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        async with AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key) as client:
            while True:
                try:
                    await client.chat.completions.create(
                        model=endpoint.model, messages=[{"role": "user", "content": "hello"}]
                    )
                except APIStatusError as error:
                    seen.append(error.status_code)
                    raise

    policy = Sampler(lambda _: (ids_of("hello"), True))
    episode = await led(notes, agent, policy, max_turns=2).run()
    assert (episode.outcome, seen) == (Outcome.TRUNCATED_TURNS, [410])
