"""An agent behind an OpenAI-compatible chat endpoint, as a policy: messages in, one message out.

Its tokens are unknown. In dialogues that are made to be imitated what it says is rendered as if it had been
sampled (`muarl.policy.spoken`), and an answer that is no message is the endpoint's failure. In those by
which it is judged there are no tokens (`Generation.usage`), and whatever it answers is its own doing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import structs

from muarl.errors import EndpointError, PolicyError
from muarl.http.chat_client import (
    ChatCall,
    ChatClient,
    ChatFunction,
    ChatMessage,
    ChatReply,
    strip_reasoning,
)
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall
from muarl.policy.protocol import GenerateRequest, Generation
from muarl.policy.spoken import as_sampled
from muarl.record import Usage
from muarl.render import Renderer, in_convention
from muarl.text_calls import Convention


class ChatPolicy:
    """One endpoint's model as the agent, for any number of dialogues.

    Args:
        client: Who is asked.
        renderer: Of the dialogues.
        convention: How it writes calls into its text; None where it calls tools.
        judged: It is what is evaluated; see above.
        temperature: Of its messages.
        max_tokens: Cap on one of them.
    """

    policy_version = 0

    def __init__(
        self,
        client: ChatClient,
        renderer: Renderer,
        *,
        temperature: float,
        max_tokens: int,
        convention: Convention | None = None,
        judged: bool = False,
    ) -> None:
        self._client = client
        self._renderer = in_convention(renderer, convention)
        self._convention = convention
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._judged = judged

    async def generate(self, request: GenerateRequest) -> Generation:
        """Ask for one message.

        Raises:
            PolicyError: The endpoint failed, or, unless it is judged, answered with nothing that is a
                message.
            EpisodeTimeout: It did not answer in time.
        """
        told: Sequence[Message] = request.history
        functions = [tool.as_function() for tool in request.tools]
        if self._convention is not None:
            told = _answers_as_user(self._convention.told(told, request.tools))
            functions = []
        try:
            reply = await self._client.complete(
                [as_chat(message) for message in told],
                seed=request.seed,
                temperature=self._temperature,
                max_tokens=self._max_tokens,
                tools=functions,
            )
        except EndpointError as error:
            raise PolicyError(str(error)) from error
        turn = sum(message.role == "assistant" for message in request.history)
        if not self._judged:
            self._refuse_no_message(reply)
        message = _message(reply, turn)
        generation = as_sampled(message, self._renderer, request)
        if not self._judged:
            return generation
        usage = Usage(self._client.model, reply.prompt_tokens, reply.completion_tokens)
        return structs.replace(
            generation,
            usage=usage,
            # By a convention the text holds calls, which the dialogue reads like any model's.
            message=message if self._convention is None or reply.cut else None,
            finish_reason="length" if reply.cut else "stop",
        )

    def _refuse_no_message(self, reply: ChatReply) -> None:
        if reply.cut:
            raise PolicyError(
                f"{self._client!r} was cut off after {self._max_tokens} tokens; raise the agent's "
                "`max_tokens`"
            )
        if not (strip_reasoning(reply.text) or reply.calls):
            raise PolicyError(f"{self._client!r} answered with neither a text nor a call")


def _message(reply: ChatReply, turn: int) -> Message:
    if reply.cut:  # half a message is never taken for a call
        return Message("assistant", reply.text)
    calls = tuple(_call(made, f"call_{turn}_{index}") for index, made in enumerate(reply.calls))
    return Message("assistant", strip_reasoning(reply.text), calls)


def _answers_as_user(told: Sequence[Message]) -> list[Message]:
    """A conversation whose answers of tools are the user's: endpoints know none that nobody called."""
    messages: list[Message] = []
    for is_tool, group in groupby(told, key=lambda message: message.role == "tool"):
        if is_tool:
            messages.append(Message("user", "\n".join(message.content for message in group)))
        else:
            messages += group
    return messages


def as_chat(message: Message) -> ChatMessage:
    """A message in the form of chat completions; reasoning is not given back."""
    return ChatMessage(message.role, message.content, tuple(_calls(message)), message.tool_call_id)


def _calls(message: Message) -> Iterator[ChatCall]:
    for call in message.tool_calls:
        text = call.raw if call.error is not None else json.dumps(call.arguments)
        yield ChatCall(call.id, ChatFunction(call.name, text))


def _call(made: ChatCall, call_id: str) -> ToolCall:
    """What was called; a call that cannot be read is answered with an error, like any policy's."""
    name, text = made.function.name, made.function.arguments
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return ToolCall(call_id, name, error=f"arguments are no JSON: {error}", raw=text)
    if not isinstance(arguments, dict):
        return ToolCall(call_id, name, error="arguments are no JSON object", raw=text)
    if problem := json_problem(arguments):
        return ToolCall(call_id, name, error=f"wrong arguments: {problem}", raw=text)
    return ToolCall(call_id, name, arguments)
