"""A shop with several orders, an expert, a synthesis file, and dialogues to be spoiled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from anyio.from_thread import start_blocking_portal
from spec_files import spoil, write_all

from muarl.record import Episode
from muarl.testing.http_server import HttpRequest, HttpServer, http_server

ORDERS = ("W1", "W2", "W3", "W4", "W5", "W6")

TASK = """\
  - id: cancel-{n}
    goal: Cancel {order}.
    personas: [plain]
    user:
      requests:
        - ask: cancel
          facts: [{{id: order_id, value: {order}}}]
    gold:
      - tool: cancel
        arguments: {{order_id: {order}}}
"""

SYNTH = """\
version: 1
domain: domain.yaml
dialogues: 6
agent: {expert: {}}
licence: CC-BY-4.0
"""


def write_synth(folder: Path, *more: str) -> Path:
    """The shop with six tasks, and a synthesis file with further lines; gives the file."""
    write_all(folder)
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    orders = "".join(f"      {order}: {{status: pending}}\n" for order in ORDERS)
    spoil(folder / "domain.yaml", "      W1: {status: pending}\n", orders)
    tasks = "".join(TASK.format(n=n, order=order) for n, order in enumerate(ORDERS))
    (folder / "tasks.yaml").write_text(f"version: 1\ndomain: shop\ntasks:\n{tasks}")
    path = folder / "synth.yaml"
    path.write_text(SYNTH + "".join(f"{line}\n" for line in more))
    return path


def own(episode: Episode) -> Episode:
    """The same episode, which may be changed."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(episode), type=Episode)


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
