"""A chat endpoint in a thread, over real sockets, that plays an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import start_blocking_portal

from muarl.testing.http_server import HttpRequest, HttpServer, http_server


@contextmanager
def served(answer: Callable[[HttpRequest], Any]) -> Iterator[HttpServer]:
    """A chat endpoint in a thread, for what runs an event loop of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(http_server(answer)) as server,
    ):
        yield server


def completion(text: str = "", *calls: tuple[str, Any]) -> dict[str, Any]:
    """What a chat endpoint answers: a text, or calls of a tool with arguments (JSON, or its text)."""
    made = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made or None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def shop_agent(request: HttpRequest) -> dict[str, Any]:
    """The shop's expert behind an endpoint."""
    *_, last = request.json()["messages"]
    asked = [m["content"] for m in request.json()["messages"] if m["role"] == "user"]
    order = re.search(r"W\d", " ".join(asked))
    if last["role"] == "tool":
        return completion("Done. Anything else?")
    if order is None:
        return completion("Which order?")
    if "Yes" not in last["content"]:
        return completion(f"Cancel {order[0]}, shall I?")
    return completion("", ("cancel", {"order_id": order[0]}))
