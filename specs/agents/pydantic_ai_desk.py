"""The desk's agent in pydantic-ai: its tools come from the domain over MCP.

rollout: {loop: "agents/pydantic_ai_desk.py:agent"}
"""

from __future__ import annotations

import ssl

from openai import DefaultAsyncHttpxClient
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from muarl import AgentContext

# Once: a client that makes its own reads all certificates for it, 20 ms of each dialogue.
TLS = ssl.create_default_context()


async def agent(context: AgentContext) -> None:
    """Talk with the user until she leaves."""
    endpoint = await context.endpoint()
    rules, opening = (message.content for message in context.opening)
    http = DefaultAsyncHttpxClient(verify=TLS)
    provider = OpenAIProvider(base_url=endpoint.url, api_key=endpoint.key, http_client=http)
    model = OpenAIChatModel(endpoint.model, provider=provider)
    tools = MCPToolset(
        endpoint.mcp_url,
        headers=endpoint.headers,
        verify=TLS,
        tool_error_behavior="failed",
        init_timeout=60,
    )
    desk = Agent(model, instructions=rules, toolsets=[tools], retries=5)
    text, history = opening, None
    async with http, desk:
        while True:
            try:
                result = await desk.run(text, message_history=history)
            except UnexpectedModelBehavior:  # the policy's doing, not a fault: it is scored
                return
            history = result.all_messages()
            text = (await context.tell_user(result.output)).content
