"""A client that says what a test wants it to say, and nothing of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from muarl.gateway.server import Endpoint
from muarl.messages import Message


class Answer(NamedTuple):
    """An answer.

    Attributes:
        status: HTTP status.
        body: JSON; of a stream, its events.
        headers: HTTP headers.
    """

    status: int
    body: Any
    headers: Any

    @property
    def code(self) -> str:
        """Of an error."""
        return str(self.body["error"]["code"])

    @property
    def said(self) -> dict[str, Any]:
        """The message of a chat completion."""
        message: dict[str, Any] = self.body["choices"][0]["message"]
        return message


class Wire:
    """A client of an endpoint."""

    def __init__(self, endpoint: Endpoint, session: aiohttp.ClientSession) -> None:
        self.endpoint = endpoint
        self._session = session

    async def post(self, path: str, body: Any, *, key: str | None = None) -> Answer:
        """Post JSON, or bytes."""
        key = self.endpoint.key if key is None else key
        headers = {"Authorization": f"Bearer {key}"}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"{self.endpoint.url}/{path}"
        async with self._session.post(url, data=data, headers=headers) as response:
            if response.content_type == "text/event-stream":
                return Answer(response.status, events(await response.text()), response.headers)
            assert response.content_type == "application/json"
            return Answer(response.status, await response.json(), response.headers)

    async def chat(self, *messages: dict[str, Any], **fields: Any) -> Answer:
        """Ask for a chat completion."""
        body = {"model": "policy", "messages": list(messages), **fields}
        return await self.post("chat/completions", body)

    async def respond(self, given: Any, **fields: Any) -> Answer:
        """Ask for a response."""
        return await self.post("responses", {"model": "policy", "input": given, **fields})


@asynccontextmanager
async def wire(endpoint: Endpoint) -> AsyncIterator[Wire]:
    """A client while the block is open."""
    async with aiohttp.ClientSession() as session:
        yield Wire(endpoint, session)


def events(text: str) -> list[Any]:
    """What the events of a stream carry; "[DONE]" as it is."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def as_chat(message: Message) -> dict[str, Any]:
    """A message as a client sends it."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent
