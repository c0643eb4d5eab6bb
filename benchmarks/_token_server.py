"""A server that answers as vLLM's token route does, after a given time; a process of its own.

It is as cheap as asyncio allows, with ready-made answers, so that what is measured is the client.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from muarl.http.descriptors import allow_many_connections

_BACKLOG = 4096


def _answer(body: object) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def message(tokens: int, prompt: int = 0) -> bytes:
    """A message of so many tokens, in the form and size that vLLM 0.32 gives it.

    Args:
        tokens: Sampled.
        prompt: So many tokens of the prompt are scored; 0: none.
    """
    logprobs = [
        {
            "token_id": token,
            "logprob": -0.6931471824645996,
            "rank": 1,
            "top_logprobs": [{"token_id": token, "logprob": -0.6931471824645996, "rank": 1}],
        }
        for token in range(300, 300 + tokens)
    ]
    choice = {
        "index": 0,
        "finish_reason": "length",
        "stop_reason": None,
        "token_ids": list(range(300, 300 + tokens)),
        "routed_experts": None,
        "sampling_mask": None,
        "weight_versions": [{"version": "default", "start": 0, "end": tokens}],
        "logprobs": {"content": logprobs},
    }
    usage = {"prompt_tokens": 400, "total_tokens": 400 + tokens, "completion_tokens": tokens}
    return _answer(
        {
            "request_id": "generate-tokens-0123456789abcdef",
            "model": "tiny",
            "created": 1_800_000_000,
            "usage": usage,
            "prompt_logprobs": [None, *[{"7": {"logprob": -1.5}}] * (prompt - 1)]
            if prompt
            else None,
            "prompt_token_ids": None,
            "output_mode": "tokens",
            "choices": [choice],
        }
    )


class _Connection(asyncio.Protocol):
    """Reads a request by its content-length, and answers it when the time has come."""

    def __init__(self, latency_s: float, tokens: int) -> None:
        self._latency_s = latency_s
        self._message = message(tokens)
        self._look = message(16)
        self._scores = message(1, prompt=4 + 16)
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end:
            return
        _, _, rest = head.lower().partition(b"content-length:")
        if len(body) < int(rest.partition(b"\r\n")[0] or 0):
            return
        self._data = b""
        if head.startswith(b"GET /version"):
            self._write(_answer({"version": "0.32.0"}))
        elif head.startswith(b"GET"):
            self._write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        elif b'"prompt_logprobs":' in body:
            self._write(self._scores)
        elif b'"temperature":2.0' in body:  # a look at whether log-probs heed the temperature
            self._write(self._look)
        else:
            asyncio.get_running_loop().call_later(self._latency_s, self._write, self._message)

    def _write(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def _serve(latency_s: float, tokens: int) -> None:
    allow_many_connections()
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(latency_s, tokens), "127.0.0.1", 0, backlog=_BACKLOG
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is done


@contextmanager
def token_server(latency_s: float, tokens: int) -> Iterator[str]:
    """Run one while the block is open; its base URL."""
    command = [sys.executable, __file__, str(latency_s), str(tokens)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2])))
