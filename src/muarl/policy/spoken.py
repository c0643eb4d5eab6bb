"""A message that was not sampled, as if it had been: for agents that are rules, or people."""

from __future__ import annotations

from muarl.messages import Message
from muarl.policy.protocol import GenerateRequest, Generation
from muarl.render import Renderer


def as_sampled(message: Message, renderer: Renderer, request: GenerateRequest) -> Generation:
    """The ids that a policy would have had to sample to say `message`, each with certainty.

    So what is said passes through the very path that rollouts take: it is rendered, recorded and
    masked like any other message, and cut at the same cap.
    """
    ids = renderer.encode_reply(message)[: request.max_tokens]
    complete = ids[-1] in request.stop_token_ids
    return Generation(
        token_ids=ids,
        logprobs=[0.0] * len(ids),
        finish_reason="stop" if complete else "length",
        policy_version=0,
    )
