"""An order desk at the terminal: a pydantic-ai agent, its model behind an API, the shop's tools over MCP."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from muarl import AgentContext

Ask = Callable[[str], Awaitable[str]]


@dataclass
class Visit:
    """What is known of a customer's visit."""

    questions: int = 0
    answers: list[str] = field(default_factory=list)


RULES = (
    "You are the order desk. Look an order up before you change it. Ask for a yes before you change "
    "anything.\nCancel or redirect only pending orders. Take back only delivered orders. Refuse "
    "anything else."
)


def build(name: str, url: str, key: str, tools_url: str) -> Agent[Visit, str]:
    """The agent."""
    model = OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key=key))
    headers = {"Authorization": f"Bearer {key}"}
    tools = MCPToolset(tools_url, headers=headers, tool_error_behavior="failed", init_timeout=60)
    agent = Agent(model, deps_type=Visit, toolsets=[tools], retries=5)

    @agent.instructions
    def rules(_: RunContext[Visit]) -> str:
        return RULES

    return agent


async def visit(agent: Agent[Visit, str], text: str, ask: Ask) -> Visit:
    """Serve one customer, from her first words until she has nothing more to say."""
    seen, history = Visit(), None
    async with agent:
        while text:
            seen.questions += 1
            try:
                result = await agent.run(text, deps=seen, message_history=history)
            except UnexpectedModelBehavior:
                break
            history = result.all_messages()
            seen.answers.append(result.output)
            text = await ask(result.output)
    return seen


async def at_the_terminal(text: str) -> str:
    """Say something to the customer; what she answers."""
    print(text)
    return await asyncio.to_thread(input, "> ")


async def trained(context: AgentContext) -> None:
    """Serve one simulated customer, with the policy for the model."""
    place = await context.endpoint()
    agent = build(place.model, place.url, place.key, place.mcp_url)

    async def ask(text: str) -> str:
        return (await context.tell_user(text)).content

    await visit(agent, context.opening[-1].content, ask)


async def main() -> None:
    agent = build("policy", os.environ["MODEL_URL"], os.environ["KEY"], os.environ["TOOLS_URL"])
    await visit(agent, await at_the_terminal("What can I do for you?"), at_the_terminal)


if __name__ == "__main__":
    asyncio.run(main())
