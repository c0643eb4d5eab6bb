"""Conversations in tokens, matched by what was said: whose next prompt goes on from what was sampled (L1).

An agent of somebody's own sends whole histories, as chat endpoints are sent them: of the main conversation,
of sub-agents, trimmed ones, the same one twice. Here each history is matched to the conversation that it goes
on from, so that nothing sampled is ever tokenised again.

    sent      [s u]               begins one       prompt  [S S U]      sampled [A A]
    sent      [s u a t]           goes on from it  prompt  [S S U A A T]
    sent      [s u]  once more    none ends there: a new one, and a fork
    sent      [s u a' t]          what the agent is said to have said was not sampled: likewise
"""

from __future__ import annotations

from collections.abc import Sequence

from muarl.messages import Message, ToolCall, ToolSpec
from muarl.policy import Generation
from muarl.record import Sample
from muarl.render import Renderer
from muarl.side import Mark, Side
from muarl.world import equal


class Conversation:
    """One conversation, from its beginning to the last message that was sampled in it."""

    def __init__(self, side: Side, tools: tuple[ToolSpec, ...]) -> None:
        self._side = side
        self.tools = tools
        self.history: tuple[Message, ...] = ()
        self._before: tuple[tuple[Message, ...], Mark] = ((), side.mark())
        self.is_asked = False
        """Its next message is being sampled, or none came: nobody goes on from it meanwhile."""

    @property
    def prompt(self) -> list[int]:
        """Ids to be sent for the next message."""
        return self._side.prompt

    @property
    def forks(self) -> int:
        """How often its prefix broke."""
        return self._side.forks

    def ask(self, messages: tuple[Message, ...]) -> None:
        """Take the conversation up to the message that is to be sampled next."""
        self._before = (self.history, self._side.mark())
        self.is_asked = True
        if self.history:
            self._side.answer(messages[len(self.history) :], messages, self.tools)
        else:
            self._side.begin(messages, self.tools)
        self.history = messages

    def take_back(self) -> bool:
        """Be as before it was asked; whether it was anything then."""
        self.history, mark = self._before
        self._side.back_to(mark)
        self.is_asked = False
        return bool(self.history)

    def keep(self, generation: Generation, *, turn: int) -> tuple[Message, tuple[int, int, int]]:
        """Take what was sampled.

        Returns:
            The message, and where its tokens are: sample, first and one past the last.
        """
        message = self._side.read(generation, turn=turn)
        where = self._side.keep(generation)
        self.history = (*self.history, message)
        self.is_asked = False
        return message, where


class Conversations:
    """All conversations of one episode.

    Args:
        renderer: Of the policy's model.

    Attributes:
        samples: One per unbroken prefix, of all conversations, in the order in which they began.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._conversations: list[Conversation] = []
        self.samples: list[Sample] = []

    @property
    def forks(self) -> int:
        """Prefixes that broke, or were begun beside the first."""
        return max(len(self._conversations) - 1, 0) + sum(one.forks for one in self._conversations)

    def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Conversation:
        """The conversation that a history goes on from, ready for its next message to be sampled."""
        sent, offered = tuple(messages), tuple(tools)
        conversation = self._continued(sent, offered)
        if conversation is None:
            conversation = Conversation(Side(self._renderer, self.samples), offered)
            self._conversations.append(conversation)
        try:
            conversation.ask(sent)
        except BaseException:  # what no template renders was not asked
            self.take_back(conversation)
            raise
        return conversation

    def take_back(self, conversation: Conversation) -> None:
        """Forget that a conversation was asked on: no message came, and it may be asked again."""
        if not conversation.take_back():
            self._conversations.remove(conversation)

    def _continued(
        self, sent: tuple[Message, ...], offered: tuple[ToolSpec, ...]
    ) -> Conversation | None:
        """The longest conversation that these messages go on from, by something other than the agent's words."""
        found = [
            conversation
            for conversation in self._conversations
            if not conversation.is_asked
            and _same_tools(conversation.tools, offered)
            and len(conversation.history) < len(sent)
            and all(map(_same, conversation.history, sent))
            and all(message.role != "assistant" for message in sent[len(conversation.history) :])
        ]
        return max(found, key=lambda one: len(one.history), default=None)


def _same(ours: Message, sent: Message) -> bool:
    """Whether a message that comes back is the one we know; reasoning is seldom sent back."""
    if ours.role != sent.role or _text(ours) != _text(sent):
        return False
    if sent.reasoning and sent.reasoning != ours.reasoning:
        return False
    return ours.tool_call_id == sent.tool_call_id and _same_calls(_calls(ours), _calls(sent))


def _text(message: Message) -> str:
    """What can be read, with calls that could not be."""
    return message.content + "".join(call.raw for call in message.tool_calls if call.error)


def _calls(message: Message) -> list[ToolCall]:
    return [call for call in message.tool_calls if call.error is None]


def _same_calls(ours: Sequence[ToolCall], sent: Sequence[ToolCall]) -> bool:
    """Whether they say the same. To Python `true` is the number one; to who reads it, it is not."""
    return len(ours) == len(sent) and all(
        (one.id, one.name) == (other.id, other.name) and equal(one.arguments, other.arguments)
        for one, other in zip(ours, sent, strict=True)
    )


def _same_tools(ours: Sequence[ToolSpec], sent: Sequence[ToolSpec]) -> bool:
    """Likewise. They are nearly always the very objects."""
    return len(ours) == len(sent) and all(
        one is other or (one == other and equal(one.parameters, other.parameters))
        for one, other in zip(ours, sent, strict=True)
    )
