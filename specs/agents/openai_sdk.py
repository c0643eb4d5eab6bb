"""The desk's agent with nothing but the openai SDK: a loop of its own over chat completions.

rollout: {loop: "agents/openai_sdk.py:agent"}
"""

from __future__ import annotations

import json
import ssl
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from muarl import AgentContext

# Once: a client that makes its own reads all certificates for it, 20 ms of each dialogue.
TLS = ssl.create_default_context()


async def agent(context: AgentContext) -> None:
    """Talk with the user until she leaves."""
    endpoint = await context.endpoint()
    tools: Any = [tool.as_function() for tool in context.tools]
    messages: list[Any] = [{"role": m.role, "content": m.content} for m in context.opening]
    async with AsyncOpenAI(
        base_url=endpoint.url,
        api_key=endpoint.key,
        http_client=DefaultAsyncHttpxClient(verify=TLS),
    ) as client:
        while True:
            answer = await client.chat.completions.create(
                model=endpoint.model, messages=messages, tools=tools
            )
            said = answer.choices[0].message
            messages.append(said)
            for call in said.tool_calls or []:
                arguments = json.loads(call.function.arguments)
                result = await context.call_tool(call.function.name, arguments)
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": result.content}
                )
            if not said.tool_calls:
                reply = await context.tell_user(said.content or "")
                messages.append({"role": "user", "content": reply.content})
