"""What of a conversation with an environment of verifiers a dialogue can carry, and why it cannot the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.environments.protocol import Answer, Step
from muarl.errors import ToolServerError
from muarl.messages import Message


class Uncarried(Exception):
    """What a prompt holds and a dialogue cannot."""


def opening_of(prompt: Any, rules: str) -> str:
    """What the user says first, in a prompt whose system message is the domain's rules.

    Raises:
        Uncarried: It holds something else.
    """
    if not isinstance(prompt, Sequence) or isinstance(prompt, str):
        raise Uncarried("its prompt is no list of messages; only chats can be carried")
    said = [(_of(message, "role"), _of(message, "content")) for message in prompt]
    if any(not isinstance(text, str) for _, text in said):
        raise Uncarried("its prompt holds a message that is no text; only text can be carried")
    system = [text for role, text in said if role == "system"]
    if [role for role, _ in said] != ["system"] * len(system) + ["user"] or len(system) > 1:
        roles = ", ".join(role for role, _ in said)
        raise Uncarried(
            f"its prompt is {roles}; a dialogue begins with the rules and one user message (put examples "
            "into the rules)"
        )
    if (system[0] if system else "") != rules:
        wanted = json.dumps(system[0], ensure_ascii=False) if system else '""'
        raise Uncarried(f"its system message is not the domain's `rules`; let them be {wanted}")
    text: str = said[-1][1]
    return text


def new_messages(before: Sequence[Any], prompt: Sequence[Any]) -> list[Any]:
    """The messages that a prompt adds to a conversation.

    Raises:
        ToolServerError: It does not go on from it.
    """
    if len(prompt) <= len(before) or list(map(_key, before)) != list(
        map(_key, prompt[: len(before)])
    ):
        raise ToolServerError(
            "the environment asks with another conversation than the one so far (get_prompt_messages): a "
            "dialogue only goes on; return all messages before, and what answers them"
        )
    return list(prompt[len(before) :])


def _key(message: Any) -> tuple[Any, ...]:
    calls = [(call.id, call.name, call.arguments) for call in _of(message, "tool_calls") or ()]
    return _of(message, "role"), _of(message, "content") or "", calls, _of(message, "tool_call_id")


def last_messages(state: Any) -> list[Any]:
    """What an environment says as it ends."""
    final = state.get("final_env_response") or ()
    return [] if isinstance(final, str) else list(final)


def step_of(message: Message, said: Sequence[Any], *, over: bool) -> Step:
    """What an environment said to a message, as answers to its calls or as the user's.

    Raises:
        ToolServerError: It is neither.
    """
    texts = [(_of(one, "role"), _of(one, "content"), _of(one, "tool_call_id")) for one in said]
    if any(not isinstance(text, str) for _, text, _ in texts):
        raise ToolServerError(
            "the environment answers with what is no text; only text can be carried"
        )
    if not message.tool_calls:
        if [role for role, _, _ in texts] != ["user"] and not (over and not texts):
            roles = ", ".join(role for role, _, _ in texts) or "nothing"
            raise ToolServerError(
                f"the environment answers a message with {roles}; one user message can be carried"
            )
        return Step(texts[0][1] if texts else "", over=over)
    by_call = {call_id: text for role, text, call_id in texts if role == "tool"}
    answered = [call.id for call in message.tool_calls if call.id in by_call]
    if len(by_call) < len(texts) or (len(answered) < len(message.tool_calls) and not over):
        roles = ", ".join(role for role, _, _ in texts) or "nothing"
        raise ToolServerError(
            f"the environment answers {len(message.tool_calls)} calls with {roles}; one tool message for "
            "each call can be carried"
        )
    none = Answer("not made: the environment ended", is_error=True)
    answers = [
        Answer(by_call[call.id]) if call.id in by_call else none for call in message.tool_calls
    ]
    return Step(answers=answers, over=over)


def _of(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)
