"""Wire types that every room shares: messages, tool calls, tool results.

They are msgspec structs: immutable, cheap to create by the thousand, and encoded without code of
ours. Nothing here knows tokens. They hold data only, never each other in a circle, so the cycle
collector need not look at them (`gc=False`): thousands of dialogues hold hundreds of thousands.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call the policy made.

    Attributes:
        id: Unique within the dialogue.
        name: Tool name as the policy wrote it; "" if it could not be read.
        arguments: Parsed arguments; empty if they could not be read.
        error: Why the call could not be read (malformed JSON, no name), or None.
        raw: The text the policy wrote, kept only when `error` is set.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    error: str | None = None
    raw: str = ""


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a tool answered. An error is an answer: the policy reads it and goes on.

    Attributes:
        call_id: The call it answers.
        name: The tool. Its server's name, whatever the policy calls it (see `muarl.perturb`).
        content: What the policy reads.
        is_error: The call did not do what it was to do.
        instead: What answered in the server's stead: a kind of perturbation; "" if it did itself.
        verbatim: Its text is the server's own to the letter: that it is an error is not said before it.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    instead: str = ""
    verbatim: bool = False

    def as_message(self, called: str | None = None) -> Message:
        """The answer as the policy reads it; `called` is its name for the tool."""
        says_so = self.is_error and not self.verbatim
        text = f"Error: {self.content}" if says_so else self.content
        return Message("tool", text, tool_call_id=self.call_id, name=called or self.name)


def error_result(call: ToolCall, text: str) -> ToolResult:
    """The answer to a call that went wrong."""
    return ToolResult(call.id, call.name, text, is_error=True)


class ToolSpec(msgspec.Struct, frozen=True, gc=False):
    """A tool as its server describes it; `parameters` is the server's JSON Schema, untouched."""

    name: str
    description: str
    parameters: dict[str, Any]

    def as_function(self) -> dict[str, Any]:
        """It in the form of OpenAI's chat completions."""
        described = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": described}


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of a dialogue, as the policy's chat template sees it.

    Attributes:
        role: Who speaks.
        content: Visible text.
        tool_calls: Calls of an assistant message, in order.
        tool_call_id: For a tool message, the call it answers.
        name: For a tool message, the tool.
        reasoning: Hidden reasoning of an assistant message; never shown to the user.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str = ""


def with_rules(rules: str) -> list[Message]:
    """What a conversation begins with: the system prompt, or nothing where there are no rules."""
    return [Message("system", rules)] if rules else []
