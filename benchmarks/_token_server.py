"""A server that answers as vLLM's token route does, after a given time."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractContextManager

from _ready_server import Connection, answer, serve, started


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
    return answer(
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


class _Answers(Connection):
    def __init__(self, latency_s: float, tokens: int) -> None:
        super().__init__()
        self._latency_s = latency_s
        self._message = message(tokens)
        self._look = message(16)
        self._scores = message(1, prompt=4 + 16)

    def asked(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /version"):
            self.write(answer({"version": "0.32.0"}))
        elif head.startswith(b"GET"):
            self.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        elif b'"prompt_logprobs":' in body:
            self.write(self._scores)
        elif b'"temperature":2.0' in body:  # a look at whether log-probs heed the temperature
            self.write(self._look)
        else:
            asyncio.get_running_loop().call_later(self._latency_s, self.write, self._message)


def token_server(latency_s: float, tokens: int) -> AbstractContextManager[str]:
    """Run one while the block is open; its base URL."""
    return started("_token_server.py", latency_s, tokens)


if __name__ == "__main__":
    serve(lambda: _Answers(float(sys.argv[1]), int(sys.argv[2])))
