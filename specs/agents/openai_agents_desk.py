"""The desk's agent in openai-agents: over responses, its tools from the domain over MCP.

rollout: {loop: "agents/openai_agents_desk.py:agent"}
"""

from __future__ import annotations

import ssl
from typing import Any

from agents import Agent, ModelBehaviorError, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from httpx2 import AsyncClient
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from muarl import AgentContext

set_tracing_disabled(True)  # else it would send traces to OpenAI
# Once: a client that makes its own reads all certificates for it, 20 ms of each dialogue.
TLS = ssl.create_default_context()


async def agent(context: AgentContext) -> None:
    """Talk with the user until she leaves."""
    endpoint = await context.endpoint()
    rules, opening = (message.content for message in context.opening)
    place: Any = {
        "url": endpoint.mcp_url,
        "headers": endpoint.headers,
        "timeout": 60,
        "httpx_client_factory": lambda **form: AsyncClient(verify=TLS, **form),
    }
    http = DefaultAsyncHttpxClient(verify=TLS)
    async with (
        AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key, http_client=http) as client,
        MCPServerStreamableHttp(
            params=place, cache_tools_list=True, client_session_timeout_seconds=60
        ) as tools,
    ):
        model = OpenAIResponsesModel(endpoint.model, client)
        desk = Agent("desk", instructions=rules, model=model, mcp_servers=[tools])
        items: list[Any] = [{"role": "user", "content": opening}]
        while True:
            try:
                result = await Runner.run(desk, items)
            except ModelBehaviorError:  # the policy's doing, not a fault: it is scored
                return
            reply = await context.tell_user(result.final_output)
            items = [*result.to_input_list(), {"role": "user", "content": reply.content}]
