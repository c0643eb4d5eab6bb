"""The Policy protocol: token ids in; token ids, log-probs, finish reason and version out."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import msgspec

from muarl.messages import Message, ToolSpec
from muarl.record import Usage

FinishReason = Literal["stop", "length"]


class GenerateRequest(msgspec.Struct, frozen=True):
    """Ask for one policy message.

    Attributes:
        prompt_ids: The whole context so far; the engine's caches make the known part cheap.
        dialogue: Stable within a dialogue: routing and caches stick to it.
        seed: Seeds this message's draws, whatever runs beside it (law L5).
        max_tokens: Cap on sampled tokens.
        temperature: 0 is greedy. Log-probs are those of the distribution sampled from; for
            greedy, those at temperature 1.
        stop_token_ids: Sampling ends after one of these, which is part of the result.
        history: The same context as messages, for policies that are not engines.
        tools: Those that the policy is shown, likewise.
    """

    prompt_ids: list[int]
    dialogue: str
    seed: int
    max_tokens: int
    temperature: float
    stop_token_ids: tuple[int, ...]
    history: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()


class VersionSwitch(msgspec.Struct, frozen=True):
    """New weights arrived in the middle of a message.

    Attributes:
        start: First sampled token of the message that is theirs, counted from 0.
        policy_version: Their version.
    """

    start: int
    policy_version: int


class Generation(msgspec.Struct, frozen=True):
    """What the engine sampled.

    With `policy_version` 3 and one switch to version 4 at token 2, of five tokens the first two
    are version 3's and the last three version 4's: `version_ranges` gives (0, 2, 3) and (2, 5, 4).

    Attributes:
        token_ids: Exactly the sampled ids, the stop token included if it was sampled.
        logprobs: One per sampled id, under the weights and temperature that sampled it.
        finish_reason: "stop" if a stop token was sampled, "length" if `max_tokens` were.
        policy_version: Weights that sampled its first token.
        switches: Where later weights took over, in order; nearly always nowhere.
        usage: Of a model behind an endpoint: its tokens are unknown, and the ids stand for none of its.
        message: What it wrote, where that is no text to be parsed.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    policy_version: int
    switches: tuple[VersionSwitch, ...] = ()
    usage: Usage | None = None
    message: Message | None = None

    def version_ranges(self) -> list[tuple[int, int, int]]:
        """Start, end and version of each run of tokens that the same weights sampled."""
        switches = (VersionSwitch(0, self.policy_version), *self.switches)
        ends = [*(switch.start for switch in self.switches), len(self.token_ids)]
        return [(s.start, end, s.policy_version) for s, end in zip(switches, ends, strict=True)]


class EngineLoad(msgspec.Struct, frozen=True):
    """How busy an engine is.

    Attributes:
        running: Messages being sampled.
        waiting: Messages that wait inside the engine for their turn.
        kv_use: Share of the memory for keys and values that is taken, in [0, 1].
        preemptions: Messages thrown out of that memory so far, to be computed again; what counts
            is by how many there are more.
    """

    running: int
    waiting: int
    kv_use: float
    preemptions: int = 0


@runtime_checkable
class Loaded(Protocol):
    """A policy that can say how busy its engine is; the scheduler then follows it."""

    def load(self) -> EngineLoad | None:
        """The load now, at no cost and without waiting.

        None where nothing is known, or nothing new: the scheduler leaves things as they are.
        """
        ...


class Policy(Protocol):
    """Samples messages. Implementations may raise PolicyError and OSError; another error is a bug."""

    @property
    def policy_version(self) -> int:
        """Version of the weights that answer now."""
        ...

    async def generate(self, request: GenerateRequest) -> Generation:
        """Sample one message. Cancelling the call must reach the engine."""
        ...
