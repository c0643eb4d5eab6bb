"""A policy that says what a test tells it to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import msgspec

from muarl.errors import PolicyError
from muarl.policy import GenerateRequest, Generation
from muarl.policy.protocol import FinishReason


class Say(msgspec.Struct, frozen=True):
    """One scripted message.

    Attributes:
        text: What is said, as the model would write it: tool-call markup included.
        logprobs: One per sampled id; None gives -0.001, -0.002, ... so that a shifted one shows.
    """

    text: str
    logprobs: tuple[float, ...] | None = None


Script = Sequence[str | Say] | Callable[[GenerateRequest], str | Say]


class ScriptedPolicy:
    """Says the messages of a script, in each dialogue from the first on.

    The ids are `encode(text)`, then the request's first stop token; what is longer than the
    request's `max_tokens` is cut, and finishes for length, as an engine would do it.

    Args:
        script: Messages in order, or a function from the request to the message.
        encode: Text to ids, special tokens included.
        latency_s: How long a message takes, in virtual time or real.

    Attributes:
        policy_version: What it claims to sample with; may be set between messages.
        requests: Everything it was asked.

    Example:
        >>> policy = ScriptedPolicy(["Hello.", Say("Done.", logprobs=(-0.1, -0.2))], tokenizer)
    """

    def __init__(
        self, script: Script, encode: Callable[[str], Sequence[int]], *, latency_s: float = 0.0
    ) -> None:
        self._script = script
        self._encode = encode
        self._latency_s = latency_s
        self._said: Counter[str] = Counter()
        self.policy_version = 0
        self.requests: list[GenerateRequest] = []

    async def generate(self, request: GenerateRequest) -> Generation:
        self.requests.append(request)
        say = self._next(request)
        if self._latency_s:
            await anyio.sleep(self._latency_s)
        else:
            await anyio.lowlevel.checkpoint()
        ids = [*self._encode(say.text), *request.stop_token_ids[:1]]
        finish_reason: FinishReason = "stop"
        if len(ids) > request.max_tokens:
            ids, finish_reason = ids[: request.max_tokens], "length"
        if say.logprobs is None:
            logprobs = [-0.001 * (i + 1) for i in range(len(ids))]
        else:
            logprobs = list(say.logprobs)
        if len(logprobs) != len(ids):
            raise ValueError(
                f"{say.text!r} has {len(ids)} sampled ids and {len(logprobs)} logprobs"
            )
        return Generation(ids, logprobs, finish_reason, self.policy_version)

    def _next(self, request: GenerateRequest) -> Say:
        if callable(self._script):
            said = self._script(request)
        else:
            index = self._said[request.dialogue]
            if index >= len(self._script):
                raise PolicyError(
                    f"the script has {len(self._script)} messages, and dialogue "
                    f"{request.dialogue!r} asked for one more"
                )
            said = self._script[index]
            self._said[request.dialogue] += 1
        return said if isinstance(said, Say) else Say(said)
