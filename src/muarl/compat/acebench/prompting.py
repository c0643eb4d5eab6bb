"""What a model is told that writes its calls into its text, as upstream has every model do it.

A message of the agent's answers one prompt: its rules, the functions, and all that happened as a text. So
each is told anew, and is a sample of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import structs

from muarl.compat.acebench.calls import addressed_to_tools, parsed
from muarl.compat.acebench.entries import Kind
from muarl.compat.acebench.environment import ANY_ERROR
from muarl.compat.python_calls import NotCalls, as_tool_call
from muarl.compat.python_text import filled
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.text_calls import written

PROMPT = "prompt.json"
"""Beside the domain's files: the words."""
_NOTHING = "nothing was called"
_LABELS: Mapping[Kind, str] = {"multi_turn": "execution", "multi_step": "execution result"}


class Prompt(msgspec.Struct, frozen=True):
    """What a model is told.

    Attributes:
        system: The system prompt.
        user: The message after it; `{functions}` stands for the functions, `{history}` for what happened.
        official: Whether the words are upstream's.
    """

    system: str
    user: str
    official: bool


class AceCalls:
    """How a model is told of functions and of all that happened, and calls them.

    Args:
        kind: With a user or without.
        functions: As they are published.
        prompt: What the model is told.
    """

    def __init__(self, kind: Kind, functions: Sequence[Mapping[str, Any]], prompt: Prompt) -> None:
        self._kind = kind
        self._docs = {function["name"]: function for function in functions}
        self._prompt = prompt
        self.stops_at_error = kind == "multi_turn"

    def told(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        shown = [self._docs.get(tool.name) or structs.asdict(tool) for tool in tools]
        rules = [message.content for message in history if message.role == "system"]
        happened = [message for message in history if message.role != "system"]
        values = {"functions": str(shown), "history": "".join(self._lines(happened))}
        return [
            Message("system", "\n\n".join([*rules, self._prompt.system])),
            Message("user", filled(self._prompt.user, values)),
        ]

    def _lines(self, happened: Sequence[Message]) -> Iterator[str]:
        """What happened. Without a user, upstream does not show the agent what it said itself."""
        label = _LABELS[self._kind]
        for role, group in groupby(happened, key=lambda message: message.role):
            if role == "tool":
                yield f"{label}:{self._answer([message.content for message in group])}\n"
                continue
            for message in group:
                if role == "user":
                    is_answer = self._kind == "multi_step" and message is not happened[0]
                    yield f"{label if is_answer else 'user'}:{message.content}\n"
                elif self._kind == "multi_turn":
                    yield f"agent:{message.content or self.write(message.tool_calls)}\n"

    def _answer(self, answers: Sequence[str]) -> str:
        """The answers to one message as the list that upstream makes of them."""
        failed = str(ANY_ERROR)
        if self._kind == "multi_turn" and any(
            answer == failed or not answer.startswith("[") for answer in answers
        ):
            return failed if answers != [f"Error: {_NOTHING}"] else "[]"
        items = [
            answer[1:-1] if answer.startswith("[") else repr(answer)
            for answer in answers
            if answer != f"Error: {_NOTHING}"
        ]
        return f"[{', '.join(items)}]"

    def answers(self, answers: Sequence[Message]) -> None:
        """Nothing follows: all is told anew."""
        del answers

    def read(self, text: str) -> list[ToolCall]:
        """The calls of a text. One that is an expression and no call goes to the tools, too."""
        if self._kind == "multi_turn" and not addressed_to_tools(text):
            return []
        try:
            calls = parsed(text)
        except NotCalls:
            return []
        if not calls:
            return [ToolCall("", "", error=_NOTHING, raw=text)]
        return [as_tool_call(call.name, call.arguments, text) for call in calls]

    def write(self, calls: Sequence[ToolCall]) -> str:
        return written(calls)
