"""An expert agent behind the Policy protocol."""

from __future__ import annotations

from muarl.authors import RAISED, blame, let_others_pass
from muarl.domain import Agent
from muarl.errors import PolicyError
from muarl.messages import Message
from muarl.policy import GenerateRequest, Generation
from muarl.policy.spoken import as_sampled
from muarl.render import Renderer, train_tokenizer
from muarl.spec.run import RolloutSpec

_SHOWN_CHARS = 80
"""Of what an agent said that is no message."""


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
        try:
            said = self._agent.act(request.history)
            if isinstance(said, Message) and said.role == "assistant":
                return as_sampled(said, self._renderer, request)
            got = repr(said)[:_SHOWN_CHARS]
        except RAISED as error:  # boundary: the author's agent may do anything
            let_others_pass(error)
            raise PolicyError(f"the agent raised {blame(error)}") from error
        raise PolicyError(
            f"the agent's `act` returned {got}, which is no message of an assistant's; let it return "
            "Message('assistant', 'a text for the user'), or Message('assistant', '', "
            "(ToolCall('call_1', 'tool', {...}),)) to call a tool"
        )


def byte_renderer() -> Renderer:
    """For agents that bring no tokenizer of their own: each byte is a token."""
    return Renderer(train_tokenizer([], vocab_size=300))


def byte_limits(limits: RolloutSpec) -> RolloutSpec:
    """The same limits, with room for messages whose tokens are bytes."""
    return limits.model_copy(update={"max_tokens": 4096, "context_tokens": 65_536})
