"""The desk's agent in pydantic-ai: its tools come from the domain over MCP.

rollout: {loop: "agents/pydantic_ai_desk.py:agent"}
"""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from muarl import AgentContext


async def agent(context: AgentContext) -> None:
    """Talk with the user until she leaves."""
    endpoint = await context.endpoint()
    rules, opening = (message.content for message in context.opening)
    model = OpenAIChatModel(
        endpoint.model, provider=OpenAIProvider(base_url=endpoint.url, api_key=endpoint.key)
    )
    tools = MCPToolset(
        endpoint.mcp_url, headers=endpoint.headers, tool_error_behavior="failed", init_timeout=60
    )
    desk = Agent(model, instructions=rules, toolsets=[tools], retries=5)
    text, history = opening, None
    async with desk:
        while True:
            try:
                result = await desk.run(text, message_history=history)
            except UnexpectedModelBehavior:  # the policy's doing, not a fault: it is scored
                return
            history = result.all_messages()
            text = (await context.tell_user(result.output)).content
