"""A chat endpoint that answers at once.

Asked for several messages it gives five with probabilities; asked to word one, it gives that one back;
else it says yes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from _ready_server import Connection, answer, serve, started

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
    return answer(body)


class _Answers(Connection):
    def asked(self, head: bytes, body: bytes) -> None:
        self.write(completion(said(json.loads(body)["messages"])))


@contextmanager
def chat_server() -> Iterator[str]:
    """Run one while the block is open; its base URL."""
    with started("_chat_server.py") as url:
        yield f"{url}/v1"


if __name__ == "__main__":
    serve(_Answers)
