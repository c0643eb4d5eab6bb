"""An LLM user with a device: she calls her tools, reads what they answer, and then speaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from muarl.http.chat_client import ChatCall, ChatMessage, ChatReply, strip_reasoning
from muarl.messages import ToolCall
from muarl.user.protocol import Device
from muarl.user.speaker import Speaker


async def speak(
    client: Speaker,
    messages: Sequence[ChatMessage],
    device: Device,
    *,
    rounds: int,
    seed: Callable[[int], int],
    temperature: float,
    max_tokens: int,
) -> tuple[ChatReply, list[ChatMessage]]:
    """Ask her until she speaks, and make the calls that she makes on the way.

    Args:
        client: Who is asked.
        messages: What was said and done so far.
        device: Hers.
        rounds: Answers with calls, at most; then she is asked without her tools.
        seed: Of each round's sampling.
        temperature: Likewise.
        max_tokens: Cap on each answer.

    Returns:
        What she said, and the calls and results before it.

    Raises:
        EpisodeError: As of the client, or of the device.
    """
    offered = [tool.as_function() for tool in device.tools]
    deeds: list[ChatMessage] = []
    number = 0
    while True:
        answer = await client.complete(
            [*messages, *deeds],
            seed=seed(number),
            temperature=temperature,
            max_tokens=max_tokens,
            tools=offered if number < rounds else (),
        )
        if not answer.calls or answer.cut or number == rounds:
            return answer, deeds
        text = strip_reasoning(answer.text)
        deeds.append(ChatMessage("assistant", text, tool_calls=answer.calls))
        for call in answer.calls:
            result = await device.call(parsed_call(call))
            told = result.as_message().content
            deeds.append(ChatMessage("tool", told, tool_call_id=call.id))
        number += 1


def parsed_call(call: ChatCall) -> ToolCall:
    """A call as she wrote it; what cannot be read is hers to be told of."""
    name, text = call.function.name, call.function.arguments
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return ToolCall(call.id, name, error=f"the arguments are no JSON: {error}", raw=text)
    if not isinstance(arguments, dict):
        return ToolCall(call.id, name, error="the arguments are no JSON object", raw=text)
    return ToolCall(call.id, name, arguments)
