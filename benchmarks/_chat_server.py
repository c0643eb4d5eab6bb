"""A chat endpoint in a process of its own that answers at once, so that what is measured is the client.

Asked for several messages it gives five with probabilities; asked to word one, it gives that one back;
else it says yes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muarl.http.descriptors import allow_many_connections

_DRAFT = "She wants to say: "
_SEVERAL = json.dumps(
    {
        "messages": [
            {"text": text, "probability": share}
            for text, share in (
                *(("Yes, please.", 0.4), ("yes", 0.3), ("Go ahead!", 0.15)),
                *(("fine by me, thank you very much", 0.1), ("hm, okay then", 0.05)),
            )
        ]
    }
)


def said(messages: list[dict[str, str]]) -> str:
    """What the model says to a conversation."""
    last = messages[-1]["content"]
    if _DRAFT in last:
        return last.partition(_DRAFT)[2]
    return _SEVERAL if "different messages" in messages[0]["content"] else "Yes, please."


def completion(text: str) -> bytes:
    """A response in the form and about the size that vLLM gives it."""
    body: dict[str, Any] = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "tool_calls": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 400, "total_tokens": 420, "completion_tokens": 20},
    }
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        _, _, rest = head.lower().partition(b"content-length:")
        if not end or len(body) < int(rest.partition(b"\r\n")[0]):
            return
        self._data = b""
        self._transport.write(completion(said(json.loads(body)["messages"])))


async def _serve() -> None:
    allow_many_connections()
    server = await asyncio.get_running_loop().create_server(
        _Connection, "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is done


@contextmanager
def chat_server() -> Iterator[str]:
    """Run one while the block is open; its base URL."""
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve())
