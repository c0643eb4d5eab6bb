"""A policy whose engine fails now and then, in every way an engine can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import anyio
import msgspec

from muarl.errors import PolicyError
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.testing.plan import FaultPlan

PolicyFault = Literal[
    "error",
    "hang",
    "no_tokens",
    "lost_logprob",
    "nan_logprob",
    "infinite_logprob",
    "positive_logprob",
    "too_many_tokens",
    "tokens_after_stop",
    "unknown_token",
    "negative_token",
    "unknown_finish_reason",
    "cut_early",
]
"""How an engine fails: it raises; never answers; samples nothing; gives one log-prob too few; gives
a log-prob that is no number, is infinite, or is that of no probability; samples more than was asked
for; goes on after a stop token; samples an id that the vocabulary does not have; a negative one;
ends for a reason of its own, as an aborted request does; or cuts a message that has room left."""

POLICY_FAULTS: tuple[PolicyFault, ...] = PolicyFault.__args__  # type: ignore[attr-defined]
"""All of them."""


@dataclass
class FaultyPolicy:
    """Passes requests on to a sound policy, and spoils some answers by a plan.

    Which ones follows from each request's dialogue and seed, whatever else is sampled.

    Attributes:
        sound: Who really answers.
        plan: Which answers are spoiled.
        live: Requests under way.

    Example:
        >>> policy = FaultyPolicy(sound, FaultPlan(POLICY_FAULTS, rate=0.2, seed=1))
    """

    sound: Policy
    plan: FaultPlan[PolicyFault]
    live: int = 0

    @property
    def policy_version(self) -> int:
        return self.sound.policy_version

    async def generate(self, request: GenerateRequest) -> Generation:
        self.live += 1
        try:
            fault = self.plan.draw((request.dialogue, request.seed))
            if fault == "error":
                raise PolicyError("the engine failed (injected)")
            if fault == "hang":
                await anyio.sleep_forever()
            generation = await self.sound.generate(request)
            return generation if fault is None else _spoiled(fault, generation, request)
        finally:
            self.live -= 1


def _spoiled(fault: PolicyFault, good: Generation, request: GenerateRequest) -> Generation:
    ids, logprobs, stops = good.token_ids, good.logprobs, request.stop_token_ids
    changes: dict[str, dict[str, Any]] = {
        "no_tokens": {"token_ids": [], "logprobs": []},
        "lost_logprob": {"logprobs": logprobs[:-1]},
        "nan_logprob": {"logprobs": [*logprobs[:-1], float("nan")]},
        "infinite_logprob": {"logprobs": [*logprobs[:-1], float("-inf")]},
        "positive_logprob": {"logprobs": [*logprobs[:-1], 0.5]},
        "too_many_tokens": {
            "token_ids": ids[:1] * (request.max_tokens + 1),
            "logprobs": logprobs[:1] * (request.max_tokens + 1),
        },
        "tokens_after_stop": {
            "token_ids": [stops[0], *ids],
            "logprobs": [-0.001, *logprobs],
            "finish_reason": "stop",
        },
        "unknown_token": {"token_ids": [2**31, *ids[1:]]},
        "negative_token": {"token_ids": [-1, *ids[1:]]},
        "unknown_finish_reason": {"finish_reason": "abort"},
        "cut_early": {
            "token_ids": ids[:-1] or ids,
            "logprobs": logprobs[:-1] or logprobs,
            "finish_reason": "length",
        },
    }
    return msgspec.structs.replace(good, **changes[fault])
