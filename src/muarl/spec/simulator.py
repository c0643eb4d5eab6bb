"""How an LLM is asked to play a domain's user, word by word: the domain's own prompts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.spec.base import Spec, Text

Strategy = Literal["llm", "react", "verify", "reflection"]
"""How a message of hers comes about; the names are tau-bench's."""


class SimulatorSpec(Spec):
    """Prompts of the domain's own for an LLM user, of runs with `user: simulator`."""

    prompt: Text
    """Her system prompt; `{goal}` in it stands for the task's goal. A text, or the file that holds it."""
    greeting: str = "Hi! How can I help you today?"
    """What she answers to with her first message. The policy never said it and does not see it."""
    stops: Annotated[list[str], Field(min_length=1)] = ["###STOP###"]
    """Each of these ends the dialogue, wherever it stands in what she says."""
    leaves: list[str] = []
    """She goes without a word when the agent says one of these, wherever it stands in its message."""
    react: Text | None = None
    """Her system prompt under the strategy `react`, likewise with `{goal}`: she thinks first, and what
    follows `User Response:` is said."""
    verify: Text | None = None
    """What a supervisor is asked about a message before it is said, under the strategies `verify` and
    `reflection`; `{transcript}` and `{response}` stand for the dialogue and the message. It passes if
    the answer holds the word `true`."""
    reflect: Text | None = None
    """What is asked, under the strategy `reflection`, about a message that did not pass; slots as
    above. What follows `Response:` takes its place."""
