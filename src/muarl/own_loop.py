"""Dialogues led by an agent with a loop of its own: an async function of a context.

    async def agent(context):
        history = list(context.opening)
        while True:
            message = await context.generate(history)
            history.append(message)
            for call in message.tool_calls:
                history.append(await context.call_tool(call))
            if not message.tool_calls:
                history.append(await context.tell_user(message.content))

What it samples becomes samples for training as exactly as in muarl's own loop: each conversation that it
sends is matched to the one it goes on from (`muarl.conversations`). It may send others beside the main one, with
rules and tools of its own (sub-agents), shorter ones, or the same one again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from muarl.messages import Message, ToolCall, ToolSpec
from muarl.own_forms import check_asked, check_call, check_text, checked
from muarl.record import Outcome
from muarl.spec import TaskSpec

if TYPE_CHECKING:
    from muarl.gateway.server import Endpoint
    from muarl.own_dialogue import LedDialogue


class DialogueOver(BaseException):
    """The dialogue has ended: the user left, a terminal tool was called, or a cap was reached.

    Raised from whatever an agent awaits then. It is no `Exception`, so that what an agent catches of its
    own does not catch it; it may be caught to clean up, and need not be raised again.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.value)


class AgentLoop(Protocol):
    """An agent's own loop: leads one dialogue from the user's first message on."""

    async def __call__(self, context: AgentContext) -> None:
        """Talk. Returning ends the dialogue, if the user has not."""
        ...


class AgentContext:
    """What an agent has of one dialogue. May be used by several tasks of its own at once.

    Attributes:
        opening: The domain's rules as a system message, where it has any, and the user's first message.
    """

    def __init__(self, dialogue: LedDialogue, opening: Sequence[Message], task: TaskSpec) -> None:
        self._dialogue = dialogue
        self._task = task
        self.opening = tuple(opening)

    @cached_property
    def task(self) -> TaskSpec:
        """What is to be done, as a copy. An agent in production does not know it: tell tasks apart by it."""
        return self._task.model_copy(deep=True)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The domain's tools, as they are shown to the agent now."""
        return self._dialogue.offered

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        max_tokens: int | None = None,
    ) -> Message:
        """Sample the next message of a conversation from the policy.

        Args:
            messages: The whole conversation. Where it goes on from one that was sampled in before, its
                tokens go on from those.
            tools: What may be called in it; None: the domain's tools.
            max_tokens: Fewer than the run's cap.

        Raises:
            DialogueOver: A cap was reached, or it was over before.
            TypeError: Something given has another form.
            ValueError: There is no message, or no room for one.
        """
        offered = self.tools if tools is None else tools
        await checked(check_asked, messages, offered, max_tokens)
        return await self._dialogue.generated(messages, offered, max_tokens)

    async def call_tool(
        self, call: ToolCall | str, arguments: Mapping[str, Any] | None = None
    ) -> Message:
        """Call a tool of the domain; what it answered, as a message for the conversation.

        Args:
            call: A call of the policy's; or a tool's name, for a call of the agent's own.
            arguments: Of the latter. What is no JSON is answered as an error of the call's, and not made.

        Raises:
            DialogueOver: It was a terminal tool, or the dialogue was over before.
            TypeError: Something given has another form.
        """
        await checked(check_call, call, arguments)
        made, result = await self._dialogue.called(call, dict(arguments or {}))
        return result.as_message(made.name)

    async def tell_user(self, text: str) -> Message:
        """Say something to the user; what she answered.

        Raises:
            DialogueOver: She has nothing more to say, or the dialogue was over before.
            AgentError: The policy has not sampled anything yet, or not since she was told something.
            TypeError: It is no text.
        """
        await checked(check_text, "tell_user: what is said", text)
        return await self._dialogue.told(text)

    async def endpoint(self) -> Endpoint:
        """A local OpenAI-compatible endpoint in front of the policy, and the domain's tools over MCP.

        What is asked there with its key is as if asked of `generate` and `call_tool`. That the dialogue
        is over is an error there, of status 410; the agent is then cancelled, if it does not end.

        Raises:
            SetupError: The program runs on trio.
            DialogueOver: It was over before.
        """
        return await self._dialogue.endpoint()

    def note(self, **values: Any) -> None:
        """Write something into the episode's record, such as which of its sub-agents were used.

        Raises:
            AgentError: A value is no JSON.
        """
        self._dialogue.noted(values)
