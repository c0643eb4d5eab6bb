"""Calls: who makes them, and how the agent writes them."""

from typing import Literal

from muarl.spec.base import OneOrName, PythonRef, Spec

Who = Literal["agent", "user"]
"""The agent, or the user on her own device."""


class TemplateCallsSpec(Spec):
    """The agent is shown tools by its model's chat template, and calls them as that has it."""


class TextCallsSpec(Spec):
    """The agent is told of tools in words, and writes calls into its text."""

    convention: PythonRef | None = None
    """What it is told, what it writes and how that is read: a `muarl.text_calls.Convention`. Left out,
    calls are `[first_tool(name='value'), second_tool()]`."""


class CallsSpec(OneOrName):
    """How the agent calls tools."""

    template: TemplateCallsSpec | None = None
    """As its model's chat template has it."""
    text: TextCallsSpec | None = None
    """In its text, for models whose template knows no tools, or benchmarks that ask for it."""
