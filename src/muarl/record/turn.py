"""What was said and done in a dialogue, message by message."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from muarl.messages import Message, ToolCall, ToolResult
from muarl.world import Change

UNLISTED = "unlisted"
"""In `ToolResult.instead`: the name called is not in the perturbed list of tools."""

NOT_MADE = "not_made"
"""Likewise: a call after one that failed, where the domain's convention makes none."""


class UserReply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a user did in one turn.

    Attributes:
        text: What the policy reads; "" when the user only leaves.
        stop: The user ends the dialogue after this.
        act: What the user did, where the simulator knows: "open", "tell:order_id", "confirm",
            "deny", "change", "accept_refusal", "next", "unclear", "did:restart",
            "failed:restart", "abandon", "stop"; and what her knobs made her do: "partly:order_id", "refuse",
            "digress", "silence", "unavailable", "push_back", "challenge", "pass".
        knobs: Knobs that acted in this turn, each as often as it did; see `muarl.spec.KnobsSpec`.
        chances: Knobs that could have acted in it. The rate of a knob is its acts by its chances.
        breaches: Kinds of breach of what she was about to say and did not: an LLM's tries that
            its guard threw away.
        calls: What she called on her own device before she said it; the policy sees none of it.
        results: What her tools answered, in call order.
        changes: What her calls changed in the world, call by call.
        per_call: How many of `changes` each call made, in call order; see `changes_of`.
        perturbed: Kinds of perturbation that made `text` of what she meant to say.
        meant: What that was; "" if nothing was perturbed.
        shows: Tools that the agent is shown from here on, beside those it knew.
    """

    text: str
    stop: bool = False
    act: str = ""
    knobs: tuple[str, ...] = ()
    chances: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    changes: list[Change] = []
    per_call: list[int] = []
    perturbed: tuple[str, ...] = ()
    meant: str = ""
    shows: tuple[str, ...] = ()


class Perturbed(msgspec.Struct, frozen=True, gc=False):
    """What acted on the list of tools that a policy was offered.

    Attributes:
        kind: Of perturbation; see `muarl.spec.PerturbSpec`.
        tool: The server's name of the tool it acted on.
    """

    kind: str
    tool: str


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a message of a model behind an endpoint took, as the endpoint counts it.

    Attributes:
        model: Its name there.
        prompt_tokens: Tokens it was sent; None where the endpoint does not say.
        completion_tokens: Tokens it wrote, likewise.
    """

    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Turn(msgspec.Struct, omit_defaults=True, gc=False):
    """One policy message and all that answered it.

    Attributes:
        message: What the policy said and called.
        sample: Index of the sample that holds its tokens.
        start: First sampled token, in that sample.
        end: One past the last sampled token.
        finish_reason: "stop" or "length".
        policy_version: Weights that sampled its first token; the sample's spans know the others.
        results: Tool results, in call order.
        reply: The user's answer, if the message went to the user.
        changes: What the policy's calls changed in the world during this turn, call by call.
        per_call: How many of `changes` each call made, in the order of `results`; see `changes_of`.
        usage: Of a model behind an endpoint. Its tokens are unknown: the sample has none of this turn.
        made: The calls that `results` answer, where an agent's own loop made others than the message's.
        told: What the user was told, where an agent's own loop told her other words than the message's.
    """

    message: Message
    sample: int
    start: int
    end: int
    finish_reason: str
    policy_version: int
    results: list[ToolResult] = []
    reply: UserReply | None = None
    changes: list[Change] = []
    usage: Usage | None = None
    made: list[ToolCall] | None = None
    told: str | None = None
    per_call: list[int] = []

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls that were made, or begun to be made, in order."""
        return self.message.tool_calls if self.made is None else self.made

    def answered(self, result: ToolResult, changes: Sequence[Change]) -> None:
        """Note what a call was answered, and what it changed."""
        self.results.append(result)
        self.changes += changes
        self.per_call.append(len(changes))

    @property
    def said(self) -> str:
        """What the policy said to the user, or beside its calls."""
        return self.message.content if self.told is None else self.told


def changes_of(made: Turn | UserReply, call: int) -> list[Change] | None:
    """What one of its calls changed; None where that is not on record.

    It is not of a call without an answer. Records of version 5 and before have what all calls of a message
    changed together.

    Example:
        Three changes, and `per_call` is `[1, 0, 2]`: the first is the first call's, the others the third's.
    """
    if call >= len(made.results):
        return None
    if len(made.results) == 1 or not made.changes:
        return made.changes
    if len(made.per_call) != len(made.results):
        return None
    start = sum(made.per_call[:call])
    return made.changes[start : start + made.per_call[call]]
