"""A chat endpoint that answers from a script, over real sockets, on asyncio and trio."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketStream
from raw_listener import raw_listener

HANG = b"hang"
"""Answer: read the request and say nothing."""
SLAM = b"slam"
"""Answer: read the request and close the connection."""


def completion(text: str | None, finish_reason: str = "stop", **message: Any) -> bytes:
    """A whole HTTP response that carries a chat completion."""
    body = {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish_reason,
            }
        ],
    }
    return response(200, json.dumps(body))


def response(status: int, body: str = "", **headers: str) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body.encode())}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Endpoint:
    """What the server was asked.

    Attributes:
        url: Base URL.
        heads: Request line and headers of each request.
        bodies: Its JSON.
        open: Connections that are open now.
    """

    def __init__(self, answers: Sequence[bytes]) -> None:
        self._answers = list(answers)
        self.url = ""
        self.heads: list[str] = []
        self.bodies: list[Any] = []
        self.open = 0

    async def serve(self, stream: SocketStream) -> None:
        self.open += 1
        try:
            async with stream:
                await self._answer(stream)
        except (anyio.BrokenResourceError, anyio.EndOfStream):
            pass  # the client has left
        finally:
            self.open -= 1

    async def _answer(self, stream: SocketStream) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += await stream.receive()
        self.heads.append(head.decode())
        self.bodies.append(json.loads(body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer == HANG:
            await stream.receive()  # ends when the client hangs up
        elif answer != SLAM:
            await stream.send(answer)


@asynccontextmanager
async def endpoint(*answers: bytes) -> AsyncIterator[Endpoint]:
    """Serve the answers in order, the last one again and again."""
    state = Endpoint(answers)
    async with raw_listener(state.serve) as url:
        state.url = url + "/v1"
        yield state
