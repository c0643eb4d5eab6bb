"""An expert agent behind the Policy protocol."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.authors import RAISED, blame, let_others_pass
from muarl.domain import Agent
from muarl.errors import PolicyError
from muarl.messages import Message
from muarl.policy import GenerateRequest, Generation
from muarl.render import Renderer


class ExpertPolicy:
    """Lets a rule-based agent speak as if it had been sampled; for one dialogue.

    Its ids are those the policy would have had to sample to say the same, so that expert dialogues
    are rendered, recorded and masked by the very path that rollouts take.
    """

    policy_version = 0

    def __init__(self, agent: Agent, renderer: Renderer) -> None:
        self._agent = agent
        self._renderer = renderer

    async def generate(self, request: GenerateRequest) -> Generation:
        ids = self._ids_of(request.history)[: request.max_tokens]
        complete = ids[-1] in request.stop_token_ids
        return Generation(
            token_ids=ids,
            logprobs=[0.0] * len(ids),
            finish_reason="stop" if complete else "length",
            policy_version=self.policy_version,
        )

    def _ids_of(self, history: Sequence[Message]) -> list[int]:
        try:
            said = self._agent.act(history)
            if not isinstance(said, Message) or said.role != "assistant":
                raise TypeError(f"expected an assistant's Message, got {said!r}")
            return self._renderer.encode_reply(said)
        except RAISED as error:  # boundary: the author's agent may do anything
            let_others_pass(error)
            raise PolicyError(f"the agent raised {blame(error)}") from error
