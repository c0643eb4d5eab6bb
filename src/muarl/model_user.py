"""A user who is a model that is sampled here: the dialogue role-reversed, in tokens (law L1).

She is `muarl.user.llm.LlmUser`, with the same role, knobs, tries and guards; what differs is who words
her messages. Her system prompt holds manner, facts and goals; the agent's messages are her user's; her
own are what she samples. Each message that she sampled ends in one of two places:

    said          in `samples`, as a policy's messages are
    thrown away   in `rejected`: the prompt and the message, a sample of its own

What she is sent next goes on from the ids that she sampled. Where it does not say what she sampled (a
direction for one message, a slip of the keys, a message put into her mouth), her prompt is rendered
anew, and the fork is counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muarl.errors import UserError
from muarl.http.chat_client import (
    ChatCall,
    ChatFunction,
    ChatMessage,
    ChatReply,
    strip_reasoning,
)
from muarl.messages import Message, Role, ToolCall, ToolSpec
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.policy.flaws import sound_message
from muarl.record import Sample, UserReply
from muarl.render import Renderer
from muarl.side import Side, append_sampled
from muarl.user import Device, User, hand_over
from muarl.user.handling import parsed_call
from muarl.user.llm import split_stop

CONTEXT = "context"
"""Breach of a user whose context is used up; not her doing alone."""


@dataclass(frozen=True)
class UserModel:
    """A model that plays users.

    Attributes:
        renderer: Of its template and tokenizer.
        context_tokens: Tokens of her side of a dialogue, at most.
        policies: Sample its messages; where there are several (of past users), each dialogue draws
            one, each as likely as another.
    """

    renderer: Renderer
    context_tokens: int
    policies: list[Policy] = field(default_factory=list)


class ModelSpeaker:
    """Samples the messages of one dialogue's user; see `muarl.user.speaker.Speaker`.

    Attributes:
        side: What she said, in tokens.
        rejected: What she sampled and did not say.
    """

    model = "sampled here"

    def __init__(
        self, policy: Policy, renderer: Renderer, *, dialogue: str, context_tokens: int
    ) -> None:
        self.side = Side(renderer)
        self.rejected: list[Sample] = []
        self._policy = policy
        self._renderer = renderer
        self._dialogue = dialogue
        self._context_tokens = context_tokens
        self._asked: tuple[list[ChatMessage], Sequence[Mapping[str, Any]]] = ([], ())
        self._reply = ChatReply("", cut=False)
        self._open: Generation | None = None  # sampled, and neither said nor thrown away
        self._count = 0

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatReply:
        history = self._turn_to(list(messages), tools)
        room = self._context_tokens - len(self.side.prompt)
        if room <= 0:
            raise UserError(f"her context of {self._context_tokens} tokens is used up", CONTEXT)
        request = GenerateRequest(
            prompt_ids=self.side.prompt,
            dialogue=self._dialogue,
            seed=seed,
            max_tokens=min(room, max_tokens),
            temperature=temperature,
            stop_token_ids=self._renderer.stop_token_ids,
            history=tuple(history),
        )
        vocab_size = self._renderer.tokenizer.vocab_size
        self._open = await sound_message(self._policy, request, vocab_size)
        message = self.side.read(self._open, turn=self._count)
        self._count += 1
        self._reply = ChatReply(
            message.content,
            cut=self._open.finish_reason == "length",
            calls=tuple(map(_as_chat_call, message.tool_calls)),
        )
        return self._reply

    def said(self) -> None:
        """What was sampled last, if anything was since, is what she says."""
        if self._open is not None:
            self.side.keep(self._open)
            self._open = None

    def thrown_away(self) -> None:
        """It is not."""
        if self._open is not None:
            sample = Sample(list(self.side.prompt))
            append_sampled(sample, self._open)
            self.rejected.append(sample)
            self._open = None

    def _turn_to(
        self, messages: list[ChatMessage], tools: Sequence[Mapping[str, Any]]
    ) -> list[Message]:
        """Make the prompt that of these messages; the same, as a policy's history."""
        history = [_as_message(message) for message in messages]
        before, asked = self._asked, (messages, tools)
        self._asked = asked
        count = len(before[0])
        goes_on = before == (messages[:count], tools) and self._is_hers(messages[count:])
        if goes_on:
            self.said()
            self.side.answer(history[count + 1 :], history, _as_specs(tools))
            return history
        self.thrown_away()
        if before != asked:
            self.side.begin(history, _as_specs(tools))
        return history

    def _is_hers(self, following: Sequence[ChatMessage]) -> bool:
        """Whether what follows what she was asked last begins with what she answered."""
        if len(following) < 2:
            return False
        said, reply = following[0], self._reply
        text = strip_reasoning(reply.text)
        wanted = text if said.tool_calls else split_stop(text)[0]
        return said == ChatMessage("assistant", wanted, tool_calls=said.tool_calls) and (
            not said.tool_calls or said.tool_calls == reply.calls
        )


class ModelUser:
    """An LLM user whose messages a `ModelSpeaker` samples: tells it which of them were said."""

    def __init__(self, user: User, speaker: ModelSpeaker) -> None:
        self._user = user
        self._speaker = speaker

    def take(self, device: Device) -> None:
        hand_over(self._user, device)

    async def open(self) -> UserReply:
        return self._said(await self._user.open())

    async def reply(self, agent_text: str) -> UserReply:
        return self._said(await self._user.reply(agent_text))

    def _said(self, reply: UserReply) -> UserReply:
        self._speaker.said()
        return reply


def _as_message(message: ChatMessage) -> Message:
    roles: dict[str, Role] = {"system": "system", "user": "user", "tool": "tool"}
    return Message(
        roles.get(message.role, "assistant"),
        message.content,
        tool_calls=tuple(map(parsed_call, message.tool_calls)),
        tool_call_id=message.tool_call_id,
    )


def _as_chat_call(call: ToolCall) -> ChatCall:
    arguments = call.raw if call.error else json.dumps(call.arguments)
    return ChatCall(call.id, ChatFunction(call.name, arguments))


def _as_specs(tools: Sequence[Mapping[str, Any]]) -> list[ToolSpec]:
    functions = (tool["function"] for tool in tools)
    return [ToolSpec(f["name"], f["description"], f["parameters"]) for f in functions]
